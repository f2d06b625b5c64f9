# The end of make demo, on the cluster that it leaves running.
cd "$root"
export KUBECONFIG
KUBECONFIG=$(bin/cluster path kubeconfig)
commands=(
  'go run ./test/demo'
  'kubectl numa status'
)
