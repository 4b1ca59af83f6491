{{- define "shef-verifierd.selector" -}}
app.kubernetes.io/name: shef-verifierd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "shef-verifierd.labels" -}}
{{ include "shef-verifierd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
