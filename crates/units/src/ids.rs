//! Names of parts: small numbers that print with their kind.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($repr:ty) $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            /// As an index into a slice.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )* };
}

ids! {
    /// A stage of a blueprint, in the order it was reserved.
    StageId(u16) "stage";
    /// A processor core.
    CoreId(u16) "core";
    /// A flash channel.
    ChannelId(u16) "ch";
    /// A die within its channel.
    DieId(u16) "die";
    /// An erase block, numbered flat over the array.
    BlockId(u32) "block";
    /// An NVMe queue; 0 is the admin queue.
    QueueId(u16) "q";
}
