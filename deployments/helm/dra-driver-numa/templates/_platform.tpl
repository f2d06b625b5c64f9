{{/* Lets service accounts use one of OpenShift's SecurityContextConstraints. OpenShift has a
ClusterRole for each. Takes a dict of root, name, metadata, scc and accounts. */}}
{{- define "dra-driver-numa.scc" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}-scc
  namespace: {{ include "dra-driver-numa.namespace" .root }}
  {{- .metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: system:openshift:scc:{{ .scc }}
subjects:
  {{- range .accounts }}
  - kind: ServiceAccount
    name: {{ . }}
    namespace: {{ include "dra-driver-numa.namespace" $.root }}
  {{- end }}
{{- end }}

{{/* Lets a namespace have any number of pods with Kubernetes' own priority classes. Takes a
dict of root, name and metadata. */}}
{{- define "dra-driver-numa.quota" -}}
apiVersion: v1
kind: ResourceQuota
metadata:
  name: {{ .name }}
  namespace: {{ include "dra-driver-numa.namespace" .root }}
  {{- .metadata | nindent 2 }}
spec:
  hard:
    pods: 1G
  scopeSelector:
    matchExpressions:
      - scopeName: PriorityClass
        operator: In
        values: [system-node-critical, system-cluster-critical]
{{- end }}
