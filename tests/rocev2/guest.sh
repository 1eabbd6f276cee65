# In the guest: rxe0 and rxe1 on the two ends of a wire, rxe2 on one to the network namespace `far`, where no device is.
# Then the command, without loss and with 2 % of the packets lost on each wire in both directions; LOSS says how many else.
set -e
# Both ends of the first wire are in one namespace, the only one in which this kernel's rxe listens: let it take packets
# that come from an address of its own.
ip2 link add v0 type veth peer name v1
ip2 link add v2 type veth peer name v3
ip2 netns add far
for dev in all default v0 v1; do
  for setting in rp_filter=0 accept_local=1 arp_ignore=1 arp_announce=2; do
    echo "${setting#*=}" > "/proc/sys/net/ipv4/conf/$dev/${setting%=*}"
  done
done
ip2 link set v3 netns far
ip2 addr add 10.9.0.1/24 dev v0
ip2 addr add 10.9.0.2/24 dev v1
ip2 addr add 10.9.1.1/24 dev v2
ip2 netns exec far ip2 addr add 10.9.1.2/24 dev v3
# Room for the longest packet of RoCEv2: 4096 bytes and its headers.
for dev in v0 v1 v2; do ip2 link set "$dev" mtu 4200 up; done
ip2 netns exec far ip2 link set v3 mtu 4200 up
ip2 netns exec far ip2 link set lo up
rdma link add rxe0 type rxe netdev v0
rdma link add rxe1 type rxe netdev v1
rdma link add rxe2 type rxe netdev v2
lose() {
  for dev in v0 v1 v2; do tc2 qdisc replace dev "$dev" root netem loss "$1%"; done
  ip2 netns exec far tc2 qdisc replace dev v3 root netem loss "$1%"
}
# Tests know their program by the place where it was built.
if [ -n "${PROGRAM:-}" ]; then
  mkdir -p "${PROGRAM%/*}"
  ln -s /t/tickgate "$PROGRAM"
fi
# What the first device has sent again.
resent() {
  cat /sys/class/infiniband/rxe0/ports/1/hw_counters/completer_retry_err
}
for loss in ${LOSS:-0 2}; do
  echo "== $loss % lost"
  lose "$loss"
  before=$(resent)
  LOST=$loss "$@"
  rdma statistic show link rxe0/1
  # A wire that loses nothing proves nothing about one that does.
  [ "$loss" = 0 ] || [ "$(resent)" -gt "$before" ]
done
