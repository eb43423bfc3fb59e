import { errorTable, grpcStatusOf, type ErrorRow } from '../errors.ts'
import type { Files } from './output.ts'

/** The reference page of the error table: each code with its response and its reason in logs. */
export function toErrorPage(): Files {
  const rows = Object.entries<ErrorRow>(errorTable).map(([code, { status, reason, text, detail, grpc }]) => {
    const shown = `${text}${detail === undefined ? '' : `${detail}<detail>`}`
    return `| \`${code}\` | ${status} | ${grpc ?? grpcStatusOf(status)} | \`${reason}\` | \`${shown}\` |`
  })
  return {
    'docs/reference/errors.md': `<!-- Written by \`make generate\`. Do not edit. -->
# Errors

Responses that the data plane makes when a request fails. HTTP clients get the status and the text; gRPC clients get HTTP 200 with \`grpc-status\`, and the text as
\`grpc-message\`. The reason is the field \`reason\` of the access log and the label \`reason\` of metrics. What each policy does when it fails is in
[the guide](../guide/failures.md).

| code | status | grpc-status | reason | text |
|---|---|---|---|---|
${rows.join('\n')}
`,
  }
}
