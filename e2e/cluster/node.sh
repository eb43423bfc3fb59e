# The part of ./localcluster that makes a node of the machine: container runtime, kubelet, DNS, load balancer addresses.
# Sourced by it and, for load balancer addresses and the audit policy, by ./kind; uses their variables and functions.

image() { # name dir [buildah arguments...]
  local name=$1 dir=$2 tar
  shift 2
  tar=$(mktemp -u --suffix=.tar)
  buildah --storage-driver vfs bud --isolation chroot --layers -q -t "$name" "$@" "$dir" >/dev/null
  buildah --storage-driver vfs push -q "$name" "docker-archive:$tar:$name"
  ctrk images import "$tar" >/dev/null
  rm -f "$tar"
  log "loaded $name"
}

# The pause container cannot be pulled: a program that waits for SIGTERM and reaps children.
pause_image() {
  ctrk images ls -q | grep -q localhost/pause:1 && return
  local dir
  dir=$(mktemp -d)
  cat > "$dir/pause.c" <<'C'
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void quit(int s) { exit(0); }
static void reap(int s) { while (waitpid(-1, 0, WNOHANG) > 0); }
int main() { signal(SIGTERM, quit); signal(SIGINT, quit); signal(SIGCHLD, reap); for (;;) pause(); }
C
  gcc -static -Os -o "$dir/pause" "$dir/pause.c" 2>/dev/null
  printf 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n' > "$dir/Dockerfile"
  image localhost/pause:1 "$dir"
  rm -rf "$dir"
}

node_config() {
  mkdir -p "$RUN/cni"
  : > "$RUN/resolv.conf"
  cat > "$RUN/cni/10-pods.conflist" <<CONF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$RUN/ipam"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
CONF
  # restrict_oom_score_adj: the machine may lack CAP_SYS_RESOURCE.
  cat > "$RUN/containerd.toml" <<CONF
version = 2
root = "$RUN/containerd"
state = "$RUN/containerd-state"
[grpc]
  address = "$RUN/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$RUN/cni"
CONF
  cat > "$RUN/kubelet.yaml" <<CONF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: $PKI/ca.crt}, webhook: {enabled: true}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /$NS
enforceNodeAllocatable: []
failSwapOn: false
failCgroupV1: false
localStorageCapacityIsolation: false
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$RUN/containerd.sock
evictionHard: {memory.available: "1Mi", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
podLogsDir: $RUN/pod-logs
resolvConf: $RUN/resolv.conf
maxPods: 250
CONF
  cat > "$RUN/Corefile" <<CONF
.:53 {
  bind $IP
  errors
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    kubeconfig $PKI/admin.conf local
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
  cache 5
}
CONF
}

# CoreDNS does not run in a pod, so its Service has a manual EndpointSlice.
dns_service() {
  kc apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.96.0.10, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
endpoints: [{addresses: ["$IP"], conditions: {ready: true}}]
YAML
}

is_node_ready() { kc get node "$NODE" | grep -qw Ready; }

# A kubelet kills unknown pods below its cgroup root, so each cluster has its own cgroup in every hierarchy.
cgroup_root() {
  local hierarchy
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then mkdir -p "/sys/fs/cgroup/$NS"; return; fi
  for hierarchy in /sys/fs/cgroup/*/; do mkdir -p "$hierarchy$NS" 2>/dev/null || true; done
}

start_node() {
  node_config
  cgroup_root
  start containerd containerd --config "$RUN/containerd.toml"
  wait_for 120 test -S "$RUN/containerd.sock"
  wait_for 120 ctrk version
  pause_image
  start kcm "$BIN/kube-controller-manager" --kubeconfig="$PKI/kcm.conf" --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
    --use-service-account-credentials=true --cluster-cidr=10.244.0.0/16 --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
    --leader-elect=false --concurrent-deployment-syncs=5
  start sched "$BIN/kube-scheduler" --kubeconfig="$PKI/sched.conf" --leader-elect=false
  start kubelet "$BIN/kubelet" --kubeconfig="$PKI/kubelet.conf" --config="$RUN/kubelet.yaml" --hostname-override=$NODE --node-ip=$IP \
    --root-dir="$RUN/kubelet" --cert-dir="$RUN/kubelet-certs"
  start proxy "$BIN/kube-proxy" --kubeconfig="$PKI/proxy.conf" --hostname-override=$NODE --cluster-cidr=10.244.0.0/16 --proxy-mode=iptables \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
  start coredns "$BIN/coredns" -conf "$RUN/Corefile"
  dns_service
  start lb "$HERE/localcluster" lb-loop
  wait_for 300 is_node_ready
  wait_for 180 kc -n default get serviceaccount default
}

stop_node() {
  local kind id
  stop lb kubelet proxy sched kcm coredns
  [ -S "$RUN/containerd.sock" ] || return 0
  for id in $(ctrk containers ls -q 2>/dev/null); do
    ctrk containers info "$id" | jq -r '.Spec.linux.namespaces[]? | select(.type == "network") | .path // empty'
  done 2>/dev/null | sort -u > "$RUN/pod-networks" || true
  for kind in tasks containers; do
    for id in $(ctrk $kind ls -q 2>/dev/null); do
      if [ $kind = tasks ]; then ctrk tasks rm -f "$id"; else ctrk containers rm "$id"; fi >/dev/null 2>&1 || true
    done
  done
  stop containerd
}

wipe_node() {
  grep -oE 'cni-[^/]+$' "$RUN/pod-networks" 2>/dev/null | xargs -r -n1 ip netns del 2>/dev/null || true
  grep -oE " $RUN[^ ]*" /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null || true
}

# Assigns an address to every Service of type LoadBalancer: spec.loadBalancerIP, or the next free address of 10.199.1.0/24.
lb_loop() {
  local row namespace name ip services used next
  while :; do
    kc get svc -A --watch -o json 2>/dev/null |
      jq -c --unbuffered 'select(.spec.type == "LoadBalancer" and ((.status.loadBalancer.ingress // []) | length == 0)) | [.metadata.namespace, .metadata.name, (.spec.loadBalancerIP // "")]' |
      while read -r row; do
        namespace=$(jq -r '.[0]' <<<"$row") name=$(jq -r '.[1]' <<<"$row") ip=$(jq -r '.[2]' <<<"$row")
        services=$(kc get svc -A -o json </dev/null) || services='{"items": []}'
        # The Service was changed several times before it got its address: keep the first one.
        jq -e --arg namespace "$namespace" --arg name "$name" 'any(.items[]; .metadata.namespace == $namespace and .metadata.name == $name and
          ((.status.loadBalancer.ingress // []) | length > 0))' <<<"$services" >/dev/null && continue
        if [ -z "$ip" ]; then
          used=$(jq -r '.items[].status.loadBalancer.ingress[]?.ip' <<<"$services")
          # Assign addresses in sequence: that of a Service that was just deleted may still route to its pods.
          next=$(cat "$RUN/lb-last" 2>/dev/null || echo 0)
          for _ in {1..240}; do
            next=$((next % 240 + 1))
            grep -qx "10.199.1.$next" <<<"$used" || break
          done
          echo "$next" > "$RUN/lb-last"
          ip=10.199.1.$next
        fi
        # Retry while the API server restarts; stop if the Service was deleted.
        for _ in {1..20}; do
          kc -n "$namespace" patch svc "$name" --subresource=status --type=merge -p "{\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"$ip\"}]}}}" >/dev/null 2>&1 </dev/null && break
          [[ $(kc -n "$namespace" get svc "$name" 2>&1 </dev/null) == *NotFound* ]] && break
          sleep 1
        done
      done
    sleep 1
  done
}

# Logs requests of pods to the API server without bodies; tests compare them with the permissions of roles.
audit_policy() {
  cat > "$RUN/audit.yaml" <<CONF
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
  - {level: Metadata, userGroups: ["system:serviceaccounts"]}
  - {level: None}
CONF
}
