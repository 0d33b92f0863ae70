this is not a kernel
