"""The part of the generated ``dispatch.py`` that only a GPU task has: where tensors lie, and builds for that device."""

from __future__ import annotations

IMPORTS = "\nimport torch\n"

GPU = '''

HOST = ""
_thread = threading.local()


def _place(tensors):
    """Number of the GPU that the tensors lie on, HOST for host memory. ValueError where they lie apart."""
    places = {t.get_device() for t in tensors.values() if hasattr(t, "get_device")}
    if len(places) > 1:
        raise ValueError("the tensors lie on more than one device")
    place = next(iter(places), -1)
    return HOST if place < 0 else place


class _OnGpu(_Version):
    """A version on one GPU: compiled for it, launched on the stream that is torch's current one there."""

    def device(self):
        if self.place == HOST:
            return {}
        major, minor = torch.cuda.get_device_capability(self.place)
        arch = self.runtime.forge.arch_name(major, minor)
        return {"gpu": True, "arch": arch, "device": torch.device("cuda", self.place)}

    def begin(self):
        """As the session's own begin, without the environment: only an import changes that, and puts it back."""
        self.runtime.forge._session[:] = [self.session]
        if self.place != HOST and not getattr(_thread, "known", False):
            torch.cuda.is_current_stream_capturing()  # a new thread gets its context by it, also during a capture
            _thread.known = True

    def here(self):
        """Its GPU as torch's current one."""
        if self.place == HOST or torch.cuda.current_device() == self.place:
            return contextlib.nullcontext()
        return torch.cuda.device(self.place)

    @contextlib.contextmanager
    def loading(self):
        """Extensions of one name may be several versions', and the caller's environment stays as it was."""
        before, built = dict(os.environ), _extensions({})
        try:
            with self.here():
                self.begin()
                self.build.begin(self.session)
                yield
        finally:
            _extensions(built)
            for name in {*os.environ} - {*before}:
                del os.environ[name]
            os.environ.update(before)
            target = f"{self.session.target}{os.sep}"
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", None) or "").startswith(target):
                    del sys.modules[name]

    def call(self, tensors):
        self.begin()
        if self.place == HOST or torch.cuda.current_device() == self.place:
            return self.function(**tensors)
        with torch.cuda.device(self.place):
            return self.function(**tensors)

    def prepare(self, tensors):
        with self.here():
            return super().prepare(tensors)


def _extensions(known):
    """Swap what torch remembers of extensions built in this process: it renames the second build of a name."""
    counter = getattr(sys.modules.get("torch.utils.cpp_extension"), "JIT_EXTENSION_VERSIONER", None)
    before = getattr(counter, "entries", {})
    if counter is not None:
        counter.entries = known
    return before


_kind = _OnGpu
'''
