#!/usr/bin/env bash
# A machine with RDMA devices on one that has none: Debian's kernel with its software device (rdma_rxe), under QEMU without
# KVM. It proves what arrives, never how fast. Nothing is installed: Debian's packages are unpacked under BED.
#
#   bed.sh prepare            fetches and unpacks what it takes (x86-64, some 150 MB)
#   bed.sh image FILE…        makes the guest's file system; FILEs go to /t, programs with their libraries
#   bed.sh boot COMMAND       starts the guest, runs COMMAND in it, prints what it prints and ends with its status
#
# BED: where all of it lies, target/rocev2-bed if not set. LIMIT: seconds until a guest is ended, 300.
set -euo pipefail

BED=${BED:-$PWD/target/rocev2-bed}
UNPACKED=$BED/unpacked
LIBRARIES=$UNPACKED/usr/lib/x86_64-linux-gnu:$UNPACKED/lib/x86_64-linux-gnu
# The emulator, and what the guest runs. Libraries of these that this machine has are taken from it.
PACKAGES=(qemu-system-x86 busybox-static kmod iproute2 ethtool libibverbs1 ibverbs-providers librdmacm1 libnl-3-200 libnl-route-3-200)
# rxe computes its checks with crc32_generic.
MODULES=(crc32_generic rdma_rxe ib_uverbs rdma_ucm veth sch_netem)
# In busybox's shell its own ip and tc come first, so iproute2's have other names.
PROGRAMS=(bin/ip:ip2 sbin/tc:tc2 usr/bin/rdma:rdma sbin/ethtool:ethtool)

prepare() {
  local kernel wanted package
  [ "$(cat "$BED/prepared" 2>/dev/null)" != "${PACKAGES[*]}" ] || return 0
  mkdir -p "$BED/packages" "$UNPACKED"
  cd "$BED/packages"
  kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
  [ -n "$kernel" ] || { echo 'bed: apt knows no linux-image-amd64: apt-get update' >&2; return 1; }
  # What an installation would bring. What belongs to a running system stays away.
  wanted=$(apt-get install --simulate --no-install-recommends "${PACKAGES[@]}" | sed -n 's/^Inst \([^ ]*\).*/\1/p' |
    grep -vE '^(systemd|lib(pam|nss)-systemd|libsystemd|libudev|udev)' || true)
  for package in $(printf '%s\n' "${PACKAGES[@]}" "$kernel" $wanted | sort -u); do
    compgen -G "${package}_*.deb" >/dev/null || apt-get download -qq "$package"
  done
  for package in *.deb; do dpkg -x "$package" "$UNPACKED"; done
  ls "$UNPACKED/lib/modules" >"$BED/release"
  ln -sf kmod "$UNPACKED/bin/depmod"
  LD_LIBRARY_PATH=$LIBRARIES "$UNPACKED/bin/depmod" -b "$UNPACKED" "$(cat "$BED/release")"
  printf '%s\n' "${PACKAGES[*]}" >"$BED/prepared"
}

# A file under a new name in the guest; a program with its libraries.
put() {
  local from=$1 to=$2 library
  install -D "$from" "$BED/root/$to"
  [ "$(head -c 4 "$from" | tail -c 3)" = ELF ] || return 0
  LD_LIBRARY_PATH=$LIBRARIES ldd "$from" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\t\(\/[^ ]*\).*/\1/p' |
    while read -r library; do
      case $library in
        /lib64/*) install -D "$library" "$BED/root$library" ;;
        *) install -D "$library" "$BED/root/lib/${library##*/}" ;;
      esac
    done
}

# The files of modules, each behind those that it needs.
modules() {
  local known="$UNPACKED/lib/modules/$(cat "$BED/release")/modules.dep" module
  for module in "${MODULES[@]}"; do
    grep -E "/${module//_/[-_]}\.ko:" "$known" | awk -F': *' '{ n = split($2, needs, " "); while (n) print needs[n--]; print $1 }'
  done | awk '!seen[$0]++'
}

image() {
  local root=$BED/root pair number=0 module library file
  rm -rf "$root"
  mkdir -p "$root"/{bin,lib64,lib,etc,proc,sys,dev,tmp,run,var,t,modules,usr/lib/x86_64-linux-gnu}
  ln -s ../run "$root/var/run"
  install "$UNPACKED/bin/busybox" "$root/bin/busybox"
  for pair in "${PROGRAMS[@]}"; do
    put "$UNPACKED/${pair%:*}" "bin/${pair#*:}"
  done
  # libibverbs looks for drivers where Debian has them.
  mkdir -p "$root/etc/libibverbs.d"
  cp "$UNPACKED/etc/libibverbs.d/rxe.driver" "$root/etc/libibverbs.d/"
  cp -r "$UNPACKED/usr/lib/x86_64-linux-gnu/libibverbs" "$root/usr/lib/x86_64-linux-gnu/"
  find "$root/usr/lib/x86_64-linux-gnu/libibverbs" -type f ! -name 'librxe*' -delete
  for library in "$UNPACKED"/usr/lib/x86_64-linux-gnu/{libibverbs,librdmacm}.so.1 "$UNPACKED"/{usr/,}lib/x86_64-linux-gnu/libnl-*.so.?*; do
    [ ! -e "$library" ] || cp -L "$library" "$root/lib/"
  done
  for module in $(modules); do
    cp "$UNPACKED/lib/modules/$(cat "$BED/release")/$module" "$(printf '%s/modules/%02d-%s' "$root" "$number" "${module##*/}")"
    number=$((number + 1))
  done
  for file in "$@"; do put "$file" "t/${file##*/}"; done
  cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/t LD_LIBRARY_PATH=/lib HOME=/ TMPDIR=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mkdir /dev/shm
mount -t tmpfs none /dev/shm
exec </dev/console >/dev/console 2>&1
stty -onlcr
# Errors of the kernel are worth seeing, the rest is not.
echo 4 >/proc/sys/kernel/printk
for module in /modules/*; do insmod "$module" || echo "guest: no module $module"; done
ip link set lo up
ulimit -l unlimited
sh -c "$(sed -n 's/.*bed=\([^ ]*\).*/\1/p' /proc/cmdline | tr ',' ' ')"
echo "guest ends with $?"
poweroff -f
INIT
  chmod +x "$root/init"
  (cd "$root" && find . | LC_ALL=C sort | "$UNPACKED/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$BED/image"
}

# The command goes by the kernel's command line: blanks become commas.
boot() {
  local status command=${1// /,}
  LD_LIBRARY_PATH=$LIBRARIES timeout -k 5 "${LIMIT:-300}" "$UNPACKED/usr/bin/qemu-system-x86_64" \
    -L "$UNPACKED/usr/share/qemu" -L "$UNPACKED/usr/share/seabios" -accel tcg,thread=multi -machine q35 -cpu max,la57=off \
    -smp 2 -m "${MEMORY:-768}" -nodefaults -no-user-config -display none -nic none -no-reboot -serial stdio \
    -kernel "$UNPACKED/boot/vmlinuz-$(cat "$BED/release")" -initrd "$BED/image" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr clocksource=hpet random.trust_cpu=on bed=$command" \
    </dev/null 2>&1 | tee "$BED/console"
  status=$(sed -n 's/^guest ends with \([0-9]*\).*/\1/p' "$BED/console" | tail -n 1)
  [ -n "$status" ] || { echo "bed: the guest gave no status: it hung for ${LIMIT:-300} s, or fell" >&2; return 99; }
  return "$status"
}

case ${1:-} in
  prepare | image | boot) "$@" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
