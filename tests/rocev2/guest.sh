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
# What one end of the first wire sends to the other goes by the wire, as if they were two hosts.
ip2 rule add pref 100 lookup local
ip2 rule del pref 0
ip2 rule add pref 1 iif lo to 10.9.0.2 lookup 101
ip2 rule add pref 1 iif lo to 10.9.0.1 lookup 102
ip2 route add 10.9.0.2 dev v0 src 10.9.0.1 table 101
ip2 route add 10.9.0.1 dev v1 src 10.9.0.2 table 102
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
# What the wire between the first two has lost. (A device that is taken away takes its counters with it.)
lost() {
  tc2 -s qdisc show dev v0 | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'
}
for loss in ${LOSS:-0 2}; do
  echo "== $loss % lost"
  lose "$loss"
  before=$(lost)
  LOST=$loss "$@"
  rdma statistic show link rxe0/1
  # A wire that loses nothing proves nothing about one that does.
  [ "$loss" = 0 ] || [ "$(lost)" -gt "$before" ]
done
