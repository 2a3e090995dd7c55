//! The one place that knows everything: configuration, and runs built from it.

pub mod config;
