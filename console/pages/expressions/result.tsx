import type { EvaluateResult } from '#api/management/expressions.ts'
import { formatNumber } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { ValueText } from '../../ui/value.tsx'

/** The value of an expression, or why there is none. */
export function Result({ result }: { readonly result: EvaluateResult }) {
  const { problems, error, value, type, isTruncated, microseconds, evaluations, reads } = result
  const faults = [...problems, ...(error === null || problems.some(({ message }) => message === error.message) ? [] : [error])]
  return (
    <Panel title="Result" aside={<span title={`fastest batch of ${evaluations} evaluations`}>{formatNumber(microseconds)} µs per evaluation</span>}>
      <div class="body stack" role="status">
        {faults.map(({ line, column, message }) => (
          <p key={`${line} ${column} ${message}`} class="notice is-error">
            <span class="mono">
              {line}:{column}
            </span>{' '}
            {message}
          </p>
        ))}
        {value !== null && (
          <>
            <div class="row">
              <Badge tone="accent">{type ?? 'value'}</Badge>
              {isTruncated && <Badge tone="warn">cut at 64 KiB</Badge>}
            </div>
            <ValueText class="text value">{value}</ValueText>
          </>
        )}
        {reads.length > 0 && (
          <p class="muted">
            Reads <span class="mono">{reads.join(', ')}</span>
          </p>
        )}
        {reads.includes('request.body') && <p class="muted">In policies, reading the body buffers it up to maxBufferSize.</p>}
      </div>
    </Panel>
  )
}
