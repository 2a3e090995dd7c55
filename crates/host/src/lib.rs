//! The other end of the link: the host's memory, its NVMe driver, and the oracle that knows what a correct device answers.
pub mod oracle;
