# Installs the archive that lies beside the folder `spack` with this recipe:
#   spack repo add DIR/spack/spack_repo/hyperslab && spack install hyperslab
import os

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *

_ARCHIVE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 5, "@ARCHIVE@"))


class Hyperslab(Package):
    """Makes scientific array I/O fast, predictable and safe: a connector that HDF5 programs load unchanged, benchmarks of
    formats, and advice before a run."""

    homepage = ""
    url = f"file://{_ARCHIVE}"

    license("MIT OR Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    # The archive holds programs, for this processor and glibc @GLIBC@ or newer.
    requires("platform=linux", "target=@ARCH@:")

    def install(self, spec, prefix):
        Executable("./install.sh")("--prefix", str(prefix))

    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hyperslab)
        env.prepend_path("PYTHONPATH", self.prefix.lib.join("hyperslab-python"))
        env.set("HYPERSLAB_ROOT", self.prefix)

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hyperslab)

    @run_after("install")
    def check_install(self):
        Executable(self.prefix.bin.hyperslab)("--version", "-v")
