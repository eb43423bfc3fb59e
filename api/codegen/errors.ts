import { errorTable, grpcStatusOfError, type ErrorRow } from '../errors.ts'
import type { Files } from './output.ts'

/** The reference page of the error table: each code with its response and its reason in logs. */
export function toErrorPage(): Files {
  const rows = Object.entries<ErrorRow>(errorTable).map(([code, { status, reason, text, detail, grpc }]) => {
    const shown = `${text}${detail === undefined ? '' : `${detail}<detail>`}`
    return `| \`${code}\` | ${status} | ${grpc ?? grpcStatusOfError(status)} | \`${reason}\` | \`${shown}\` |`
  })
  return {
    'docs/reference/errors.md': `<!-- Written by \`make generate\`. Do not edit. -->
# Errors

Responses of the data plane to requests that it cannot forward. HTTP clients get the status and the text. gRPC clients get HTTP 200 with \`grpc-status\`, and the text as
\`grpc-message\`. The reason is the field \`reason\` of the access log and the label \`reason\` of metrics. Effects of policies that fail: [failures](../guide/failures.md). Causes and fixes:
[troubleshooting](../guide/troubleshooting.md).

| code | status | grpc-status | reason | text |
|---|---|---|---|---|
${rows.join('\n')}
`,
  }
}
