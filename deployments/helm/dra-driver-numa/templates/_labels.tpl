{{/* What the DaemonSet selects by: never changes. */}}
{{- define "dra-driver-numa.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "dra-driver-numa.labels" -}}
{{ include "dra-driver-numa.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels and annotations of an object. */}}
{{- define "dra-driver-numa.metadata" -}}
labels:
  {{- include "dra-driver-numa.labels" . | nindent 2 }}
{{- include "dra-driver-numa.annotations" . }}
{{- end }}
{{- define "dra-driver-numa.annotations" -}}
{{- with .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The driver's image: a digest names it alone. */}}
{{- define "dra-driver-numa.image" -}}
{{- if .Values.image.digest -}}
"{{ .Values.image.repository }}@{{ .Values.image.digest }}"
{{- else -}}
"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
{{- end }}
{{- end }}
{{- define "dra-driver-numa.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the daemon and its probe have in common. */}}
{{- define "dra-driver-numa.args" -}}
- --kubelet-root={{ .Values.kubelet.root }}
{{- if ne (toString .Values.reservedCPUs) "" }}
- --reserved-cpus={{ .Values.reservedCPUs }}
{{- end }}
{{- with .Values.reservedMemory }}
- --reserved-memory={{ . }}
{{- end }}
{{- if .Values.kubelet.configFile }}
- --kubelet-config=/host/kubelet-config.yaml
{{- end }}
- -v={{ .Values.verbosity }}
{{- end }}
{{- define "dra-driver-numa.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- end }}
{{- define "dra-driver-numa.mounts" -}}
# Socket and checkpoint, and what the hook records: CDI specs name
# the paths of the host.
- name: state
  mountPath: {{ include "dra-driver-numa.state" . }}
{{- if .Values.kubelet.configFile }}
- name: kubelet-config
  mountPath: /host/kubelet-config.yaml
  readOnly: true
{{- end }}
{{- end }}
{{/* Not empty if a NodeConfig or one of its profiles selects PCI functions. */}}
{{- define "dra-driver-numa.devices" -}}
{{- range prepend ((.Values.config).profiles | default list) (.Values.config | default dict) }}
{{- if .devices }}yes{{ end }}
{{- end }}
{{- end }}
{{- define "dra-driver-numa.bindDrivers" -}}
{{- range prepend ((.Values.config).profiles | default list) (.Values.config | default dict) }}
{{- if ne "none" ((.devices).bindDrivers | default "none") }}yes{{ end }}
{{- end }}
{{- end }}
{{/* Not empty if a NodeConfig or one of its profiles divides or measures caches. */}}
{{- define "dra-driver-numa.cache" -}}
{{- range prepend ((.Values.config).profiles | default list) (.Values.config | default dict) }}
{{- if .cache }}yes{{ end }}
{{- end }}
{{- end }}
{{/* Not empty if a NodeConfig or one of its profiles changes CPUs or lets claims do so. */}}
{{- define "dra-driver-numa.performance" -}}
{{- range prepend ((.Values.config).profiles | default list) (.Values.config | default dict) }}
{{- if or (ne "none" ((.performance).allow | default "none")) (hasKey (.performance | default dict) "default") }}yes{{ end }}
{{- end }}
{{- end }}
{{- define "dra-driver-numa.state" -}}
{{ .Values.kubelet.root }}/plugins/dra.numa
{{- end }}
{{/* What the daemon tells of itself, besides health. */}}
{{- define "dra-driver-numa.monitoring" -}}
{{- if .Values.metrics.enabled }}
- --metrics-listen=:{{ .Values.metrics.port }}
{{- if .Values.metrics.cacheUse }}
- --metrics-cache-use
{{- end }}
{{- end }}
{{- if include "dra-driver-numa.metricsTLS" . }}
- --metrics-tls-cert=/metrics-tls/tls.crt
- --metrics-tls-key=/metrics-tls/tls.key
{{- if .Values.metrics.tls.clientCASecret }}
- --metrics-client-ca=/metrics-tls/ca.crt
{{- end }}
{{- end }}
{{- if .Values.pprof.enabled }}
- --pprof=127.0.0.1:6060
{{- end }}
{{- end }}
{{/* Not empty if metrics are served over TLS. */}}
{{- define "dra-driver-numa.metricsTLS" -}}
{{- if and .Values.metrics.tls.clientCASecret (not .Values.metrics.tls.secret) }}
{{- fail "metrics.tls.clientCASecret needs metrics.tls.secret" }}
{{- end }}
{{- if and .Values.metrics.enabled .Values.metrics.tls.secret }}yes{{ end }}
{{- end }}
{{/* The pod of a hook: it runs one command of the driver's image without any right on the node.
Takes a dict of root, account, args. */}}
{{- define "dra-driver-numa.hookPod" -}}
restartPolicy: Never
serviceAccountName: {{ .account }}
enableServiceLinks: false
{{- include "dra-driver-numa.pullSecrets" .root }}
{{- with .root.Values.hooks.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.hooks.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.hooks.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: hook
    image: {{ include "dra-driver-numa.image" .root }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    command: [/dra-numa]
    args:
      {{- toYaml .args | nindent 6 }}
    terminationMessagePolicy: FallbackToLogsOnError
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    {{- with .root.Values.hooks.resources }}
    resources:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{/* Labels and annotations of an object that exists only while a hook runs. Takes a dict of
root, name (of the pods, which are not those of the DaemonSet), hook and weight. */}}
{{- define "dra-driver-numa.hookMetadata" -}}
labels:
  app.kubernetes.io/name: {{ .name }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  helm.sh/hook: {{ .hook }}
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  {{- with .root.Values.commonAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
