//! Parts of a link that a file declares in a table of their own: the keys of each, its parameters for the engines, and how
//! these follow from the keys.

pub(crate) mod boost;
pub(crate) mod stacked;
