int kernel(;
