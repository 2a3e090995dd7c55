//! Who waits at a listener.

use std::io;

/// Whether somebody may wait at a listener. The system tells when somebody comes, not that somebody still waits: who could not be let in
/// is looked for again.
#[derive(Debug, Default)]
pub(crate) struct Knock {
    heard: bool,
    /// Whoever let in the last had no time for more.
    is_left: bool,
}

impl Knock {
    /// Somebody has come.
    pub(crate) fn hear(&mut self) {
        self.heard = true;
    }

    /// Whether it is worth a look.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    /// There is no time for more of them now.
    pub(crate) fn leave(&mut self) {
        self.is_left = true;
    }

    /// Whether there may be more, and nothing but time was wanting.
    pub(crate) fn has_more(&self) -> bool {
        self.is_left
    }

    /// Lets in the next who waits, if anybody does and the system allows it.
    pub(crate) fn admit<S>(&mut self, mut accept: impl FnMut() -> io::Result<S>) -> Option<S> {
        self.is_left = false;
        loop {
            match accept() {
                Ok(stream) => return Some(stream),
                // The connection was given up while it waited; there may be another behind it.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    // Else no descriptor is left, or no memory.
                    self.heard = error.kind() != io::ErrorKind::WouldBlock;
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_be_let_in_now_is_looked_for_again() {
        let kinds = [
            Some(io::ErrorKind::Interrupted),
            Some(io::ErrorKind::ConnectionAborted),
            None,
            Some(io::ErrorKind::OutOfMemory),
            None,
            Some(io::ErrorKind::WouldBlock),
        ];
        let mut kinds = kinds.into_iter();
        let mut accept = || kinds.next().expect("it asks no further").map_or(Ok(()), |kind| Err(kind.into()));
        let mut knock = Knock::default();
        knock.hear();
        assert_eq!((knock.admit(&mut accept), knock.is_heard()), (Some(()), true));
        assert_eq!((knock.admit(&mut accept), knock.is_heard()), (None, true), "no memory is left");
        assert_eq!((knock.admit(&mut accept), knock.is_heard()), (Some(()), true));
        assert_eq!((knock.admit(&mut accept), knock.is_heard()), (None, false));
    }
}
