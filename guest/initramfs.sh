#!/bin/bash
# initramfs.sh ROOT KERNEL VERSION OUT: a Debian kernel's modules with nvme-cli, fio, mke2fs and tlshd as an initramfs that runs /run.sh.
# ROOT is where the programs come from, KERNEL an unpacked kernel package.
set -e
root=$1 kernel=$2 version=$3 out=$4
work=$(mktemp -d)
mkdir -p "$work"/{bin,sbin,proc,sys,dev,tmp,etc/nvme,lib/modules/"$version",usr/lib,run,mnt,lib64}
cp "$(command -v busybox)" "$work/bin/busybox"
for name in $("$work/bin/busybox" --list); do ln -s busybox "$work/bin/$name" 2>/dev/null || true; done
# The kernel calls it by this name for what it needs itself.
ln -s ../bin/busybox "$work/sbin/modprobe"
for at in usr/lib/modules lib/modules; do [ -d "$kernel/$at/$version" ] && modules=$kernel/$at; done
base=${modules%/lib/modules}
[ -f "$modules/$version/modules.dep" ] || depmod -b "$base" "$version"
for name in virtio_pci virtio_net nvme nvme-tcp ext4 crc32c-intel crc32c_generic crct10dif_generic tls gcm ctr ghash-generic aes-generic cmac; do
    modprobe -d "$base" -S "$version" --show-depends $name 2>/dev/null | awk '/^insmod/{print $2}'
done | sort -u | while read -r file; do
    at=$work/lib/modules/$version/${file#*lib/modules/"$version"/}
    mkdir -p "$(dirname "$at")" && cp "$file" "$at"
    [ "${at%.xz}" = "$at" ] || xz -d "$at"
done
cp "$modules/$version"/modules.{builtin*,order} "$work/lib/modules/$version/" 2>/dev/null || true
depmod -b "$work" "$version"
program() {
    cp --remove-destination "$root/$1" "$work/bin/"
    chroot "$root" /lib64/ld-linux-x86-64.so.2 --list "/$1" | grep -oE '/[^ ]+\.so[^ ]*' | sort -u | while read -r library; do
        mkdir -p "$work/$(dirname "$library")" && cp -L "$root$library" "$work$library"
    done
}
for name in usr/sbin/nvme usr/bin/fio usr/sbin/mke2fs usr/sbin/tlshd; do program $name; done
name=uuid:11111111-2222-3333-4444-555555555555
echo "nqn.2014-08.org.nvmexpress:$name" >"$work/etc/nvme/hostnqn"
echo "${name#uuid:}" >"$work/etc/nvme/hostid"
printf '[debug]\nloglevel=1\n[authenticate]\nkeyrings=.nvme\n[authenticate.client]\n' >"$work/etc/tlshd.conf"
cat >"$work/init" <<'I'
#!/bin/sh
export PATH=/bin:/sbin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
/run.sh
sync; poweroff -f
I
chmod +x "$work/init"
(cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) >"$out"
rm -rf "$work"
