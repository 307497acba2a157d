//! Lets macOS' linker leave Python's symbols undefined: the interpreter that loads the module provides them. Linux'
//! linker allows this by default.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
