#!/bin/bash
# setup.sh [DIR]: what a real Linux host under QEMU needs, from Debian packages alone: QEMU 11 (which speaks vfio-user), a 6.12
# kernel, nvme-cli, fio, e2fsprogs and ktls-utils, and an initramfs of them. About five minutes as root on Debian; DIR (target/guest) may be kept.
set -e
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$here/../target/guest}
mkdir -p "$dir" && dir=$(cd "$dir" && pwd)
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -1)
apt-get install -y --no-install-recommends busybox-static kmod cpio debootstrap >/dev/null
root=$dir/trixie
if [ ! -x "$root/usr/sbin/tlshd" ]; then
    [ -x "$root/usr/bin/fio" ] || debootstrap --variant=minbase trixie "$root" "$mirror" >/dev/null
    echo "deb $mirror trixie-backports main" >"$root/etc/apt/sources.list.d/backports.list"
    chroot "$root" apt-get update >/dev/null
    chroot "$root" apt-get install -y --no-install-recommends -t trixie-backports qemu-system-x86 >/dev/null
    chroot "$root" apt-get install -y --no-install-recommends nvme-cli fio e2fsprogs ktls-utils >/dev/null
fi
package=$(chroot "$root" apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/{print $2; exit}')
version=${package#linux-image-}
if [ ! -d "$dir/k612" ]; then
    chroot "$root" sh -c "cd /var/tmp && apt-get download $package >/dev/null"
    dpkg-deb -x "$root"/var/tmp/linux-image-*.deb "$dir/k612"
fi
"$here/initramfs.sh" "$root" "$dir/k612" "$version" "$dir/base.cpio.gz"
cp "$dir/k612/boot/vmlinuz-$version" "$dir/vmlinuz"
ls -l "$dir/base.cpio.gz" "$dir/vmlinuz"
