//! The configuration space of the PCI function: who it is, where its registers lie, and its three capabilities.
//!
//! Offsets and bits are those of PCI Express Base 4.0: 7.5.1 (header), 7.5.2 (power management), 7.5.3 (PCI Express), 7.7.2
//! (MSI-X).

/// Bytes of the space; what lies beyond the first 256 is empty.
pub(crate) const CONFIG_BYTES: usize = 4096;

/// The region that has the MSI-X table and the pending bits.
pub(crate) const MSIX_BAR: u32 = 4;
/// Bytes of that region: room for 2,048 vectors of 16 bytes, then for their bits.
pub(crate) const MSIX_BAR_BYTES: u64 = 64 << 10;
pub(crate) const PENDING_AT: u32 = 32 << 10;

/// Not a number that anybody else has given to a drive: hosts know no quirks of it.
const DEVICE: u16 = 0xf1a5;

const COMMAND: usize = 0x04;
/// Of Command: the function may reach memory, and interrupt by writing there.
const BUS_MASTER: u8 = 1 << 2;
const BARS: usize = 0x10;
const CAPABILITIES: usize = 0x34;
const POWER: usize = 0x40;
const MSIX: usize = 0x50;
const EXPRESS: usize = 0x60;
const DEVICE_CONTROL: usize = EXPRESS + 8;
/// Of the upper byte of Device Control: initiates a function level reset; reads as zero.
const RESET: u8 = 0x80;

/// What the host did by a write, beyond changing bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// A function level reset (PCI Express Base 6.6.2), which is the caller's to carry out.
    Reset,
}

/// The bytes, and which of their bits hosts can change.
pub(crate) struct ConfigSpace {
    bytes: Box<[u8; CONFIG_BYTES]>,
    writable: Box<[u8; CONFIG_BYTES]>,
}

impl ConfigSpace {
    /// Of a function of `vendor` with so many vectors and `registers` bytes (a power of two) of BAR 0.
    pub(crate) fn new(vendor: u16, vectors: u16, registers: u64) -> Self {
        let mut space = ConfigSpace { bytes: Box::new([0; CONFIG_BYTES]), writable: Box::new([0; CONFIG_BYTES]) };
        space.put(0x00, &vendor.to_le_bytes());
        space.put(0x02, &DEVICE.to_le_bytes());
        // Memory space, bus master, parity, SERR, INTx disable.
        space.allow(COMMAND, &0x0546u16.to_le_bytes());
        // A list of capabilities.
        space.put(0x06, &[0x10, 0]);
        // Revision 1; mass storage, non-volatile memory, NVMe (NVMe over PCIe 1.0 section 2.1.4).
        space.put(0x08, &[0x01, 0x02, 0x08, 0x01]);
        space.bar(0, registers);
        space.bar(MSIX_BAR as usize, MSIX_BAR_BYTES);
        space.put(0x2c, &vendor.to_le_bytes());
        space.put(0x2e, &DEVICE.to_le_bytes());
        space.put(CAPABILITIES, &[POWER as u8]);
        space.allow(0x3c, &[0xff]);
        // Power management 1.2; no soft reset. The states change nothing.
        space.put(POWER, &[0x01, MSIX as u8, 0x03, 0x00, 0x08]);
        space.allow(POWER + 4, &[0x03]);
        // MSI-X: the table's size, its place, the pending bits' place.
        space.put(MSIX, &[0x11, EXPRESS as u8]);
        space.put(MSIX + 2, &(vectors - 1).to_le_bytes());
        space.allow(MSIX + 3, &[0xc0]);
        space.put(MSIX + 4, &MSIX_BAR.to_le_bytes());
        space.put(MSIX + 8, &(PENDING_AT | MSIX_BAR).to_le_bytes());
        // An endpoint, version 2: role-based errors and function level reset; four lanes at 8 GT/s.
        space.put(EXPRESS, &[0x10, 0x00, 0x02, 0x00]);
        space.put(EXPRESS + 4, &(1u32 << 28 | 1 << 15).to_le_bytes());
        space.allow(DEVICE_CONTROL, &0x7fffu16.to_le_bytes());
        space.put(EXPRESS + 0x0c, &0x43u32.to_le_bytes());
        space.put(EXPRESS + 0x12, &0x43u16.to_le_bytes());
        space
    }

    /// A 64-bit memory region that is not prefetchable.
    fn bar(&mut self, index: usize, bytes: u64) {
        self.put(BARS + 4 * index, &[0x04]);
        self.allow(BARS + 4 * index, &(!(bytes - 1)).to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn allow(&mut self, at: usize, bits: &[u8]) {
        self.writable[at..at + bits.len()].copy_from_slice(bits);
    }

    /// Whether the function may reach the guest's memory.
    pub(crate) fn is_bus_master(&self) -> bool {
        self.bytes[COMMAND] & BUS_MASTER != 0
    }

    /// Reads bytes; `at` and their end lie in the space.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes[at..at + to.len()]);
    }

    /// Writes bytes; `at` and their end lie in the space.
    pub(crate) fn write(&mut self, at: usize, from: &[u8]) -> Effect {
        let mut effect = Effect::Nothing;
        for (place, byte) in (at..).zip(from) {
            let writable = self.writable[place];
            self.bytes[place] = self.bytes[place] & !writable | byte & writable;
            if place == DEVICE_CONTROL + 1 && byte & RESET != 0 {
                effect = Effect::Reset;
            }
        }
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dword(space: &ConfigSpace, at: usize) -> u32 {
        let mut bytes = [0; 4];
        space.read(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn a_host_finds_an_nvme_controller_and_its_regions_sizes() {
        let mut space = ConfigSpace::new(0x1234, 17, 8192);
        assert_eq!((dword(&space, 0), dword(&space, 8)), (0xf1a5_1234, 0x0108_0201));
        for (bar, bytes) in [(0x10, 8192u64), (0x20, MSIX_BAR_BYTES)] {
            space.write(bar, &[0xff; 8]);
            let read = u64::from(dword(&space, bar)) | u64::from(dword(&space, bar + 4)) << 32;
            assert_eq!((!(read & !0xf)).wrapping_add(1), bytes);
            assert_eq!(read & 0xf, 4, "64 bits of memory");
        }
        space.write(0, &[0; 4]);
        assert_eq!(dword(&space, 0), 0xf1a5_1234, "read only");
    }

    #[test]
    fn the_capabilities_are_a_list_that_ends() {
        let space = ConfigSpace::new(1, 17, 8192);
        let mut at = dword(&space, CAPABILITIES) as usize & 0xff;
        let mut found = Vec::new();
        while at != 0 {
            found.push(dword(&space, at) as u8);
            at = (dword(&space, at) >> 8) as usize & 0xff;
        }
        assert_eq!(found, [0x01, 0x11, 0x10]);
        assert_eq!(dword(&space, MSIX) >> 16, 16, "17 vectors, counted from zero");
    }

    #[test]
    fn only_the_reset_bit_resets() {
        let mut space = ConfigSpace::new(1, 2, 8192);
        space.write(COMMAND, &[0xff, 0xff]);
        assert!(space.is_bus_master());
        assert_eq!(space.write(DEVICE_CONTROL, &[0xff, 0x7f]), Effect::Nothing);
        assert_eq!(dword(&space, COMMAND) as u16, 0x0546);
        assert_eq!(space.write(DEVICE_CONTROL, &[0x00, 0x80]), Effect::Reset);
        assert_eq!(dword(&space, DEVICE_CONTROL) & 0x8000, 0);
    }
}
