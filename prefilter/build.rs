//! With the feature `rtl-sim`: makes C++ of the RTL with Verilator, once for each width, and compiles it. With the feature
//! `xdp`: compiles the program for the kernel.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "rtl-sim")]
    rtl::build();
    #[cfg(feature = "xdp")]
    xdp::build();
}

#[cfg(feature = "xdp")]
mod xdp {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    pub(super) fn build() {
        // Another source: one with a mistake in it that tests must notice.
        println!("cargo::rerun-if-env-changed=PREFILTER_BPF");
        let source = std::env::var_os("PREFILTER_BPF").map_or_else(|| PathBuf::from("bpf/prefilter.c"), PathBuf::from);
        println!("cargo::rerun-if-changed={}", source.display());
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        compile(&source, &out.join("prefilter.o"));
    }

    fn compile(source: &Path, object: &Path) {
        let mut command = Command::new("clang");
        command.args(["-target", "bpf", "-mcpu=v3", "-O2", "-Wall", "-Wextra", "-Werror", "-c"]);
        command.arg(source).arg("-o").arg(object);
        let status = command
            .status()
            .unwrap_or_else(|error| panic!("the feature `xdp` needs clang: {command:?}: {error}"));
        assert!(status.success(), "{command:?}");
    }
}

#[cfg(feature = "rtl-sim")]
mod rtl {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    pub(super) fn build() {
        // Another folder of sources: those with a mistake in them that tests must notice.
        println!("cargo::rerun-if-env-changed=PREFILTER_RTL");
        let sources = std::env::var_os("PREFILTER_RTL").map_or_else(|| PathBuf::from("rtl"), PathBuf::from);
        println!("cargo::rerun-if-changed={}", sources.display());
        let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        let root = run(Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]));
        let include = Path::new(root.trim()).join("include");
        for width in ["64", "512"] {
            let name = format!("Vprefilter{width}");
            let folder = out.join(format!("model{width}"));
            let width_parameter = format!("-GWIDTH={width}");
            model("prefilter", &name, &[&width_parameter], &sources, &folder);
            shim(&name, "rtl/shim.cpp", Some(width), &folder, &include);
        }
        let folder = out.join("rings");
        model("pf_rings", "Vrings", &[], &sources, &folder);
        shim("Vrings", "rtl/rings.cpp", None, &folder, &include);
        cc::Build::new()
            .cpp(true)
            .warnings(false)
            .opt_level(2)
            .include(&include)
            .file(include.join("verilated.cpp"))
            .file(include.join("verilated_threads.cpp"))
            .flag_if_supported("-std=c++17")
            .compile("verilated");
        println!("cargo::rustc-link-lib=pthread");
    }

    /// Makes C++ of a module, under a name.
    fn model(top: &str, name: &str, parameters: &[&str], sources: &Path, folder: &Path) {
        let files = std::fs::read_dir(sources)
            .expect("the RTL")
            .map(|entry| entry.expect("a file").path());
        let parts = files.filter(|path| path.extension().is_some_and(|extension| extension == "sv"));
        let mut parts: Vec<_> = parts
            .filter(|path| !path.ends_with("pf_formal.sv") && !path.ends_with("pf_fit.sv"))
            .collect();
        parts.sort();
        run(Command::new("verilator")
            .args([
                "--cc",
                "-O3",
                "--x-assign",
                "fast",
                "--x-initial",
                "fast",
                "-Wno-fatal",
                "-Wno-lint",
            ])
            .args(["--top-module", top, "--prefix", name])
            .args(parameters)
            .arg("--Mdir")
            .arg(folder)
            .args(&parts));
    }

    /// Compiles it, with the C functions around it.
    fn shim(name: &str, source: &str, width: Option<&str>, folder: &Path, include: &Path) {
        println!("cargo::rerun-if-changed={source}");
        let made = std::fs::read_dir(folder)
            .expect("the model")
            .map(|entry| entry.expect("a file").path());
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .warnings(false)
            .opt_level(2)
            .flag_if_supported("-std=c++17")
            .include(folder)
            .include(include)
            .define("MODEL", name)
            .define("MODEL_HEADER", format!("\"{name}.h\"").as_str())
            .files(made.filter(|path| path.extension().is_some_and(|extension| extension == "cpp")))
            .file(source);
        if let Some(width) = width {
            build.define("WIDTH", width);
        }
        build.compile(name);
    }

    /// Runs a program of the build, and gives what it prints.
    fn run(command: &mut Command) -> String {
        let output = command
            .output()
            .unwrap_or_else(|error| panic!("the feature `rtl-sim` needs verilator 5: {command:?}: {error}"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
