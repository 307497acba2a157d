//! Lets macOS' linker leave Python's symbols to the interpreter that loads the module, as Linux' does by itself.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
