# What README begins with, on a machine that is only files.
mkdir cluster
cat >cluster/node.yaml <<end
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 14, memory: 3Gi, pods: 110}}
end
commands=(
  'kubectl numa topology --preset rig | head -13'
  'kubectl numa generate slices --preset rig --node-name n1 >cluster/slices.yaml'
  'kubectl numa generate classes zone.dra.numa >cluster/class.yaml'
  'kubectl numa generate pod db --image app:1 --cpus 4 --memory 64Mi >db.yaml'
  'kubectl numa simulate -f cluster -f db.yaml'
  'kubectl numa generate pod big --image app:1 --cpus 6 --memory 64Mi >big.yaml'
  'kubectl numa explain pod big -f cluster -f big.yaml | head -3 | fold -sw 80'
)
