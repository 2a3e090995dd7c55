#!/bin/sh
# What the host does, one line a step: "STEP <name>: ok" or "STEP <name>: FAILED". /how says by which transport, how much, and the
# name of the subsystem; /secure by which options of nvme-cli connections are secured.
echo
read -r transport depth name </how
step() {
    what=$1; shift
    if "$@" >/tmp/out 2>&1; then echo "STEP $what: ok"; else echo "STEP $what: FAILED"; head -c 1500 /tmp/out; fi
}
refused() { ! "$@"; }
says() { wanted=$1; shift; "$@" >/tmp/said 2>&1; grep -q -e "$wanted" /tmp/said || { cat /tmp/said; return 1; }; }
verify() {
    fio --name=v --filename=$disk --ioengine=libaio --direct=1 --rw=randwrite --bs=$1 --iodepth=$2 --size=$3 \
        --verify=crc32c --do_verify=1 --verify_state_save=0 $4
}
find_disk() { for at in $(seq 50); do disk=$(ls /dev/nvme?n1 2>/dev/null | head -1); [ -b "$disk" ] && return; sleep 0.2; done; false; }
wait_for() { for at in $(seq 50); do [ "$(cat /sys/class/nvme/*/state 2>/dev/null | head -1)" = live ] && return; sleep 0.2; done; false; }
files() {
    /bin/mke2fs -q -F -t ext4 -E lazy_itable_init=0 $disk 262144 && mount -t ext4 -o discard $disk /mnt || return 1
    dd if=/dev/urandom of=/mnt/one bs=1M count=$1 && cp /mnt/one /mnt/two && sync && umount /mnt || return 1
    mount -t ext4 $disk /mnt && cmp /mnt/one /mnt/two && rm /mnt/one && fstrim /mnt && umount /mnt
}
copies() {
    dd if=/dev/urandom of=/tmp/a bs=4096 count=4 && nvme write $disk -s 800 -c 31 -z 16384 -d /tmp/a &&
        nvme copy $disk -d 1600 -s 800,816 -b 15,15 && nvme read $disk -s 1600 -c 31 -z 16384 -d /tmp/b && cmp /tmp/a /tmp/b
}
spoils() {
    nvme write-uncor $disk -s 802 -c 0 && refused nvme read $disk -s 802 -c 0 -z 512 -d /tmp/b &&
        nvme write $disk -s 802 -c 0 -z 512 -d /tmp/a && nvme read $disk -s 802 -c 0 -z 512 -d /tmp/b
}
namespaces() {
    id=$(nvme id-ctrl $controller | awk '/^cntlid/{print $3}')
    nvme delete-ns $controller -n 1 && nvme create-ns $controller -s 131072 -c 131072 -f 0 &&
        nvme create-ns $controller -s 16384 -c 16384 -f 1 && nvme attach-ns $controller -n 1 -c $id &&
        nvme attach-ns $controller -n 2 -c $id && sleep 1 && says '0x2' nvme list-ns $controller || return 1
    wait_for; sleep 1; ls ${controller}n* && verify 4k 8 4m && disk=${controller}n2 && verify 4k 8 4m --fsync=64 || return 1
    nvme detach-ns $controller -n 2 -c $id && nvme delete-ns $controller -n 2 && disk=${controller}n1 && verify 4k 8 2m
}
# Blocks with protection information of type 1: Linux makes and checks it itself. Its driver for TCP carries no metadata, and shows
# such a namespace as one of no blocks; nvme-cli reaches them.
protects() {
    nvme format $disk --lbaf=2 --ms=$extended --pi=1 --force --timeout=200000 && sleep 1 || return 1
    [ $extended = 1 ] && return
    says T10-DIF-TYPE1-CRC cat /sys/block/${disk#/dev/}/integrity/format && verify 4k 16 8m && verify 128k 4 4m
}
# nvme-cli reads room for metadata into the file, too.
same() { head -c 4096 /tmp/b | cmp /tmp/a -; }
# PRINFO of nvme-cli: 8 has the drive make or strip, 4 check the guard, 1 the reference tag.
tags() {
    dd if=/dev/urandom of=/tmp/a bs=4096 count=1 && nvme write $disk -s 800 -c 7 -z 4096 -d /tmp/a --prinfo=8 --ref-tag=800 &&
        nvme read $disk -s 800 -c 7 -z 4096 -d /tmp/b --prinfo=13 --ref-tag=800 && same &&
        refused nvme read $disk -s 800 -c 7 -z 4096 -d /tmp/b --prinfo=9 --ref-tag=801 || return 1
    if [ $extended = 1 ]; then nvme read $disk -s 803 -c 0 -z 520 -d /tmp/m --prinfo=5 --ref-tag=803
    else nvme read $disk -s 803 -c 0 -z 512 -d /tmp/b -y 8 -M /tmp/m --prinfo=5 --ref-tag=803; fi &&
        tail -c 4 /tmp/m | od -An -tx1 >/tmp/tag && says '00 00 03 23' cat /tmp/tag
}
copies_tags() {
    nvme copy $disk -d 1600 -s 800 -b 7 --prinfor=13 --expected-ref-tags=800 --prinfow=8 --ref-tag=1600 &&
        nvme read $disk -s 1600 -c 7 -z 4096 -d /tmp/b --prinfo=13 --ref-tag=1600 && same &&
        refused nvme copy $disk -d 1600 -s 800 -b 7 --prinfor=9 --expected-ref-tags=801 --prinfow=8 --ref-tag=1600
}
extended=0
if [ $transport = tcp ]; then
    extended=1
    for module in virtio_pci virtio_net nvme-tcp; do modprobe $module; done
    ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0; sleep 1
    secure=$(cat /secure)
    if [ "$secure" ]; then
        modprobe tls
        tlshd -s >/tmp/tlshd 2>&1 &
        # nvme connect derives and keeps the key for the subsystem, but nvme discover none for discovery.
        step "key for discovery" nvme check-tls-key -i -n $(cat /etc/nvme/hostnqn) -c nqn.2014-08.org.nvmexpress.discovery -d ${secure##*=}
    fi
    where="-t tcp -a 10.0.2.2 -s $(cat /port) $secure"
    step discover says "$name" nvme discover $where
    step connect nvme connect $where -n $name
    if [ "$secure" ]; then
        step "TLS 1.3" says '(TLS1.3)' cat /tmp/tlshd
        step "without a key nothing" refused nvme discover -t tcp -a 10.0.2.2 -s $(cat /port)
    fi
elif [ $transport = sent ]; then
    # SGLs for all that is not in one piece, not for long pieces only.
    modprobe nvme sgl_threshold=1
else
    modprobe nvme
fi
modprobe ext4
complaints='I/O error|critical|nvme.*timeout|error recovery|duplicate|BUG|WARNING|blocked for more than|EXT4-fs (error|warning)'
step "namespace appears" find_disk
step "controller is live" wait_for
controller=${disk%n1}
step "nvme list" says Flashloom nvme list
step "fio, 4 KiB at depth 32, verified" verify 4k 32 $((depth * 4))m
[ $transport = sent ] && step "fio, 64 KiB in pieces, verified" verify 64k 8 8m
step "mkfs, mount, files, fstrim" files $depth
step "smart-log" says 'media_errors.*: 0' nvme smart-log $controller
step "copy" copies
step "write-uncor" spoils
step "format to 4 KiB" nvme format $disk --lbaf=1 --ses=1 --force --timeout=200000
sleep 1
step "blocks have 4 KiB" says 4096 cat /sys/block/${disk#/dev/}/queue/logical_block_size
step "fio after format" verify 4k 8 2m
step "format to 512 B" nvme format $disk --lbaf=0 --force --timeout=200000
sleep 1
if [ $depth -gt 4 ]; then
    step "protection information" protects
    step "nvme-cli --prinfo" tags
    step "copy of protected blocks" copies_tags
    step "format without" nvme format $disk --lbaf=0 --force --timeout=200000
    sleep 1
    step "fio, 128 KiB at depth 8, verified" verify 128k 8 32m
    for log in id-ctrl id-ns ns-descs error-log fw-log self-test-log supported-log-pages list-subsys; do
        case $log in id-ns | ns-descs) at=$disk ;; list-subsys) at= ;; *) at=$controller ;; esac
        step "$log" nvme $log $at
    done
    step "effects-log" nvme effects-log $controller -c 0
    step "endurance-log" nvme endurance-log $controller -g 1
    step "changed-ns-list-log" nvme changed-ns-list-log $controller
    step "ocp smart-add-log" says 'Physical media units written' nvme ocp smart-add-log $controller
    step "ocp latency-monitor-log" says 'Active Threshold' nvme ocp latency-monitor-log $controller
    step "device-self-test, short" nvme device-self-test $controller -n 1 -s 1
    sleep 1
    step "device-self-test, extended" nvme device-self-test $controller -n 1 -s 2
    for at in $(seq 60); do nvme self-test-log $controller | grep -q 'Current operation *: 0' && break; sleep 1; done
    step "both passed" says 'Operation Result *: 0' nvme self-test-log $controller
    step "flush, write-zeroes, dsm, verify, compare" sh -c "nvme flush $disk && nvme write-zeroes $disk -s 0 -c 7 &&
        nvme dsm $disk -d -s 0 -b 8 && nvme verify $disk -s 0 -c 7 && nvme write $disk -s 0 -c 0 -z 512 -d /tmp/a &&
        nvme compare $disk -s 0 -c 0 -z 512 -d /tmp/a"
    step "get-feature" nvme get-feature $controller -f 7
    step "reset while fio writes" sh -c "fio --name=v --filename=$disk --ioengine=libaio --direct=1 --rw=randwrite --bs=4k --iodepth=8 \
        --size=16m --verify=crc32c --verify_state_save=0 & sleep 1; nvme reset $controller; wait \$!"
fi
step "reset" nvme reset $controller
step "live again" wait_for
step "namespace management" namespaces
[ $transport = tcp ] && step disconnect nvme disconnect -n $name
# What write-uncor spoilt is read, and cannot be: those reads alone may be complained of.
dmesg | grep -iE "$complaints" | grep -v 'sector 80[0-9] op 0x0:(READ)' | head -5 >/tmp/out
step "nothing in the kernel's log" test ! -s /tmp/out
echo "STEPS OVER"
