//! The flash channel: exact times, and what holds whatever is submitted.

mod laws;
mod small;
mod times;
