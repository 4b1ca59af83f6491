# What the jobs of all guests say and do. Lines that begin with @@ are read by `cargo xtask vm`.
say() { echo "@@ $*"; }

# Address of the first PCI function with these numbers, as 0x1d0f:0xf010.
find_function() {
  for d in /sys/bus/pci/devices/*; do
    [ "$(cat $d/vendor):$(cat $d/device)" = "$1" ] && basename $d && return
  done
  say "failed no PCI function $1"
}

# Binds a function to vfio-pci and waits for its node.
bind_function() {
  echo vfio-pci > /sys/bus/pci/devices/$1/driver_override
  echo $1 > /sys/bus/pci/drivers_probe
  [ "$(basename $(readlink /sys/bus/pci/devices/$1/driver))" = vfio-pci ] || say "failed to bind $1"
}

# Runs a program whose output is a document: `document NAME PROGRAM...`.
document() {
  name=$1; shift
  "$@" > /tmp/out 2> /tmp/err
  say "exit $name $?"
  say "begin $name"; cat /tmp/out; say "end $name"
  sed 's/^/@@ note /' /tmp/err
}
