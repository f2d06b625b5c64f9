{{/* What the DaemonSet selects by: never changes. */}}
{{- define "dra-driver-numa.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "dra-driver-numa.labels" -}}
{{ include "dra-driver-numa.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
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
{{/* Not empty if a NodeConfig or one of its profiles lets claims change CPUs. */}}
{{- define "dra-driver-numa.performance" -}}
{{- range prepend ((.Values.config).profiles | default list) (.Values.config | default dict) }}
{{- if ne "none" ((.performance).allow | default "none") }}yes{{ end }}
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
