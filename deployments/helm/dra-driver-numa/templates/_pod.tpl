{{/* The driver's image: a digest names it alone. */}}
{{- define "dra-driver-numa.image" -}}
{{- $repository := include "dra-driver-numa.inRegistry" (list . .Values.image.repository) -}}
{{- if .Values.image.digest -}}
"{{ $repository }}@{{ .Values.image.digest }}"
{{- else -}}
"{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
{{- end }}
{{- end }}
{{/* An image in global.imageRegistry instead of its own registry. What is before the first
slash is a registry if it has a dot or a colon, or is localhost. Takes a list of root and
image. */}}
{{- define "dra-driver-numa.inRegistry" -}}
{{- $image := index . 1 -}}
{{- with ((index . 0).Values.global).imageRegistry -}}
{{ trimSuffix "/" . }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image "" }}
{{- else -}}
{{ $image }}
{{- end }}
{{- end }}
{{/* Those of the chart, then those of all charts: a parent may write them as names. */}}
{{- define "dra-driver-numa.pullSecrets" -}}
{{- $names := list }}
{{- range concat .Values.imagePullSecrets ((.Values.global).imagePullSecrets | default list) }}
{{- $names = append $names (kindIs "map" . | ternary . (dict "name" .)).name }}
{{- end }}
{{- with uniq $names }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What the daemon and its probe have in common. */}}
{{- define "dra-driver-numa.args" -}}
- --kubelet-root={{ .Values.kubelet.root }}
- --cdi-dir={{ .Values.cdi.dynamicDir }}
- --hook-dir={{ include "dra-driver-numa.hookDir" . }}
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
- --logging-format={{ .Values.loggingFormat }}
{{- end }}
{{- define "dra-driver-numa.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
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
{{- define "dra-driver-numa.hookDir" -}}
{{ .Values.hook.dir | default (printf "%s-hook" (include "dra-driver-numa.state" .)) }}
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
{{- include "dra-driver-numa.tls" (list . "metrics-tls") }}
{{- end }}
{{- if .Values.pprof.enabled }}
- --pprof=127.0.0.1:6060
{{- end }}
{{- end }}
{{/* Which versions and cipher suites of TLS a server takes. Takes a list of root and the
prefix of the flags. */}}
{{- define "dra-driver-numa.tls" -}}
{{- $prefix := index . 1 -}}
{{- with (index . 0).Values.tls.minVersion }}
- --{{ $prefix }}-min-version={{ . }}
{{- end }}
{{- with (index . 0).Values.tls.cipherSuites }}
- --{{ $prefix }}-cipher-suites={{ join "," . }}
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
