//! Structures the two ends exchange as bytes: each field is named once, with its place, and both ends use that name.

/// Declares a structure of a fixed number of bytes whose named fields are little-endian integers or byte arrays.
macro_rules! layout {
    ($(#[$doc:meta])* $name:ident[$size:literal] {
        $($(#[$field_doc:meta])* $get:ident, $set:ident: $kind:ty = $at:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(Box<[u8; $size]>);

        impl $name {
            /// Bytes of the structure.
            pub const BYTES: usize = $size;

            /// From bytes as received; what is missing at the end is zero.
            pub fn from_bytes(bytes: &[u8]) -> Self {
                let mut whole = Box::new([0; $size]);
                let length = bytes.len().min($size);
                whole[..length].copy_from_slice(&bytes[..length]);
                $name(whole)
            }

            /// The bytes to send.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0[..]
            }

            $(
                $(#[$field_doc])*
                pub fn $get(&self) -> $kind {
                    let mut field = [0; size_of::<$kind>()];
                    field.copy_from_slice(&self.0[$at..$at + size_of::<$kind>()]);
                    $crate::spec::layout::Field::unpack(field)
                }

                /// Sets the field of the same name.
                pub fn $set(&mut self, value: $kind) -> &mut Self {
                    let field = $crate::spec::layout::Field::pack(value);
                    self.0[$at..$at + size_of::<$kind>()].copy_from_slice(&field);
                    self
                }
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                $name(Box::new([0; $size]))
            }
        }
    };
}

/// A type that lies in a structure as `N` bytes.
pub(crate) trait Field<const N: usize> {
    fn unpack(bytes: [u8; N]) -> Self;
    fn pack(self) -> [u8; N];
}

macro_rules! integer_fields {
    ($($kind:ty)*) => { $(
        impl Field<{ size_of::<$kind>() }> for $kind {
            fn unpack(bytes: [u8; size_of::<$kind>()]) -> Self {
                <$kind>::from_le_bytes(bytes)
            }
            fn pack(self) -> [u8; size_of::<$kind>()] {
                self.to_le_bytes()
            }
        }
    )* };
}

integer_fields! { u8 u16 u32 u64 u128 }

impl<const N: usize> Field<N> for [u8; N] {
    fn unpack(bytes: [u8; N]) -> Self {
        bytes
    }
    fn pack(self) -> [u8; N] {
        self
    }
}

pub(crate) use layout;
