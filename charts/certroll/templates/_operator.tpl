{{/* The operator's pod, of the Deployment and of the test. */}}
{{- define "certroll.operatorPod" -}}
serviceAccountName: certroll-operator
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- with .Values.affinity }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "certroll.selector" "operator" | nindent 12 }}
  {{- end }}
topologySpreadConstraints:
{{- with .Values.topologySpreadConstraints }}
{{- toYaml . | nindent 0 }}
{{- else }}
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "certroll.selector" "operator" | nindent 6 }}
{{- end }}
terminationGracePeriodSeconds: 30
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
containers:
- name: operator
  image: {{ include "certroll.image" (list . .Values.image) }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
  - --metrics-bind-address={{ ternary ":8080" "0" .Values.metrics.enabled }}
  - --health-probe-bind-address=:8081
  {{- range .Values.scope.namespaces }}
  - --namespace={{ . }}
  {{- end }}
  {{- if eq .Values.scope.secrets "named" }}
  - --secret-scope=named
  {{- end }}
  {{- if .Values.hostsInUse.enabled }}
  - --hosts-in-use
  {{- end }}
  {{- if .Values.controlPlane.enabled }}
  - --control-plane
  {{- end }}
  {{- if .Values.metrics.tls.secretName }}
  - --metrics-tls-cert-file=/etc/certroll/metrics-tls/tls.crt
  - --metrics-tls-private-key-file=/etc/certroll/metrics-tls/tls.key
  {{- if .Values.metrics.tls.clientCA }}
  - --metrics-client-ca-file=/etc/certroll/metrics-tls/ca.crt
  {{- end }}
  {{- end }}
  {{- if ne .Values.logLevel "info" }}
  - --log-level={{ .Values.logLevel }}
  {{- end }}
  {{- range .Values.extraArgs }}
  - {{ . | quote }}
  {{- end }}
  env:
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  - {name: GLIBC_TUNABLES, value: glibc.malloc.tcache_max=128}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  - {name: health, containerPort: 8081}
  {{- if .Values.metrics.enabled }}
  - {name: metrics, containerPort: 8080}
  {{- end }}
  livenessProbe:
    httpGet: {path: /healthz, port: health}
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: health}
    periodSeconds: 2
    timeoutSeconds: 5
  {{- with .Values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
{{- with .Values.metrics.tls.secretName }}
  volumeMounts:  # the folder: a file by subPath would never change
  - {name: metrics-tls, mountPath: /etc/certroll/metrics-tls, readOnly: true}
volumes:
- name: metrics-tls
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- end }}
