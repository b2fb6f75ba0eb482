# Attempts to escape from a sandbox, in the shell: each try_ function succeeds if it escaped. A
# comment after the name says what an attempt without a sandbox needs to succeed: root. The
# variables SECRET, WORK, VICTIM and PARENT are set.
try_cat_shadow() { # root
  cat /etc/shadow; }
try_cat_secret() {
  cat "$SECRET"; }
try_find_secret() {
  find "$(dirname "$SECRET")" -name secret | grep -q secret; }
try_copy_secret() {
  cp "$SECRET" "$WORK/copy"; }
try_link_secret() {
  ln -sf "$SECRET" "$WORK/ln" && cat "$WORK/ln"; }
try_cd_out() {
  cd "$(dirname "$SECRET")"; }
try_env() {
  env | grep -q PAWL_CANARY; }
try_environ_other() {
  tr '\0' '\n' <"/proc/$VICTIM/environ" | grep -q canary; }
try_dev_tcp() {
  bash -c "exec 5<>/dev/tcp/127.0.0.1/$PORT"; }
try_kill() {
  kill -0 "$VICTIM"; }
try_chmod_setuid() {
  cp /bin/true "$WORK/true" && chmod u+s "$WORK/true" && test -u "$WORK/true"; }
try_su() { # root
  su root -s /bin/sh -c true; }
try_mount() { # root
  mkdir -p "$WORK/m" && mount -t tmpfs none "$WORK/m" && umount "$WORK/m"; }
try_unshare() { # root
  unshare -m true; }
try_unshare_map_root() {
  unshare -Ur true; }
try_nsenter() { # root
  nsenter -t "$PARENT" -n true; }
try_chroot() { # root
  chroot / true; }
try_mknod() { # root
  mknod "$WORK/vda" b 254 0; }
try_raw_disk() { # root
  set -- $(ls /dev/vd? /dev/sd? /dev/nvme?n? /dev/loop? 2>/dev/null); test -n "$1" && dd if="$1" of=/dev/null bs=512 count=1; }
try_dmesg() { # root
  dmesg >/dev/null; }
try_other_processes() {
  test -d "/proc/$PARENT"; }
try_write_bin() { # root
  touch /usr/bin/pawl-escape && rm /usr/bin/pawl-escape; }
try_write_home() {
  touch "$(dirname "$SECRET")/home" ; }
try_ulimit() { # root
  ulimit -f unlimited; }
try_sh_fork_bomb() {
  i=0; while [ $i -lt 150 ]; do sleep 20 & i=$((i+1)); done; n=$(ls -d /proc/[0-9]* | wc -l); kill $(jobs -p) 2>/dev/null; test "$n" -ge 150; }
try_fill_disk() {
  dd if=/dev/zero of="$WORK/fill" bs=1M count=12; }
