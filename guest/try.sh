#!/bin/bash
# try.sh --quick|--long tcp|secured|vfio-user|sent [FLASHLOOM [DIR]]: serves a drive and has a Linux host in QEMU use it. Every step is
# a line; the exit code says whether all went well. DIR (target/guest) is what setup.sh made. `secured` is tcp under TLS, `sent` is
# vfio-user with doorbells as messages. What FLASHLOOM_FLAGS says is given to `serve` as well.
set -u
here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in --quick) depth=2 limit=500 ;; --long) depth=16 limit=1500 ;; *) sed -n 2,4p "$0"; exit 2 ;; esac
transport=${2:?tcp or vfio-user}
flashloom=${3:-$here/../target/release/flashloom}
dir=${4:-$here/../target/guest}
dir=$(cd "$dir" && pwd) || exit 2
work=$(mktemp -d)
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
server= secure=
name=nqn.2026-11.org.flashloom:guest
case $transport in
    tcp) door="--tcp 127.0.0.1:0" ;;
    secured)
        key=NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:
        host=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555
        printf '[[host]]\nnqn = "%s"\ntls_key = "%s"\nolder_libnvme = true\n' $host $key >"$work/keys"
        door="--tcp 127.0.0.1:0 --keys $work/keys"
        transport=tcp secure="--tls --tls-key=$key"
        ;;
    vfio-user) door="--vfio-user $work/socket" ;;
    sent) door="--vfio-user $work/socket --send-doorbells" ;;
    *) sed -n 2,4p "$0"; exit 2 ;;
esac
: >"$work/served"
"$flashloom" serve $door --metrics 127.0.0.1:0 --nqn $name --timing off --queues 4 --set device.tags=true \
    ${FLASHLOOM_FLAGS:-} >"$work/served" 2>&1 &
server=$!
for _ in $(seq 600); do grep -q '^listening' "$work/served" && break; sleep 0.1; done
address=$(awk '/^listening/{print $2}' "$work/served")
[ -n "$address" ] || { echo "the drive is not served:"; cat "$work/served"; exit 1; }
mkdir "$work/overlay"
cp "$here/steps.sh" "$work/overlay/run.sh" && chmod +x "$work/overlay/run.sh"
echo "$transport $depth $name" >"$work/overlay/how"
echo "${address##*:}" >"$work/overlay/port"
echo "$secure" >"$work/overlay/secure"
cp "$dir/base.cpio.gz" "$work/initrd"
# A second archive begins at a multiple of 4 bytes.
truncate -s %512 "$work/initrd"
(cd "$work/overlay" && find . -mindepth 1 | cpio -o -H newc --quiet) >>"$work/initrd"
root=$dir/trixie
memory="-m 640 -object memory-backend-memfd,id=mem0,size=640M,share=on -machine q35,memory-backend=mem0"
if [ "$transport" = tcp ]; then
    device="-netdev user,id=n0 -device virtio-net-pci,netdev=n0,romfile="
else
    device="-device {\"driver\":\"vfio-user-pci\",\"socket\":{\"path\":\"$work/socket\",\"type\":\"unix\"}}"
fi
# QEMU of another release runs on its own loader and libraries.
timeout -k 5 $limit "$root/lib64/ld-linux-x86-64.so.2" \
    --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/pulseaudio" \
    "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" \
    -accel tcg,thread=multi -cpu max -smp 2 $memory -nodefaults -nographic -serial stdio -no-reboot \
    -kernel "$dir/vmlinuz" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off" $device </dev/null | tr -d '\r' | tee "$work/said" |
    grep --line-buffered -aE -A40 '^(STEP|Kernel panic)' || true
page=$(awk '/^metrics/{print $2}' "$work/served" | grep -oE '127[.0-9]+:[0-9]+')
if exec 3<>"/dev/tcp/${page%:*}/${page##*:}"; then
    printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
    grep -aE '^flashloom_(doorbells_sent|reads|writes)_total' <&3
    exec 3>&-
fi
kill -TERM $server
if wait $server; then ended=0; else ended=$?; fi
trap 'rm -rf "$work"' EXIT
sed -n '/^while hosts/,$p' "$work/served"
failed=$(grep -ac '^STEP .*FAILED' "$work/said")
passed=$(grep -ac '^STEP .*: ok' "$work/said")
echo "$transport: $passed steps ok, $failed failed; the drive ended with $ended"
grep -aq '^STEPS OVER' "$work/said" || { echo "the host did not come to its end:"; tail -c 4000 "$work/said"; exit 1; }
[ "$failed" = 0 ] && [ $ended = 0 ]
