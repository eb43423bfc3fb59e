import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ComponentChildren } from 'preact'
import type { RequestRecord } from '#api/management/requests.ts'
import { draft, shellWord } from '../../api/draft.ts'
import { overview } from '../../api/live.ts'
import { linkTo, navigate } from '../../ui/router.ts'
import { formatBytes, formatMs, formatTime } from '../../ui/format.ts'
import { Badge, toneOfStatus } from '../../ui/panel.tsx'
import { filterLike, phasesOf } from './records.ts'
import { toDraft } from './repeat.ts'

interface DetailsProps {
  readonly record: RequestRecord
  readonly onClose: () => void
  readonly onFilter: (filter: string) => void
}

const isCopied = signal(false)

export function Details({ record, onClose, onFilter }: DetailsProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    isCopied.value = false
    heading.current?.focus()
  }, [])
  return (
    <aside class="drawer" aria-label="Request">
      <header>
        <Badge tone={toneOfStatus(record.status)}>{record.status === 0 ? 'no response' : record.status}</Badge>
        <h2 ref={heading} tabIndex={-1}>
          {record.method} <span class="mono">{record.path}</span>
        </h2>
        <button type="button" class="quiet" onClick={onClose}>
          Close
        </button>
      </header>
      <div class="row actions">
        <button type="button" class="primary" onClick={() => repeat(record)}>
          Repeat with trace
        </button>
        <button type="button" onClick={() => onFilter(filterLike(record))}>
          Filter for these
        </button>
        <button type="button" onClick={() => void copy(record)}>
          {isCopied.value ? 'Copied' : 'Copy as curl'}
        </button>
      </div>
      {record.error !== null && <p class="notice is-error">{record.error}</p>}
      <Phases record={record} />
      <Facts record={record} />
      <Fields title="Request headers" fields={record.requestHeaders} />
      <Fields title="Response headers" fields={record.responseHeaders} />
      <Fields title="Fields of policies and services" fields={Object.entries(record.fields).map(([name, value]) => [name, String(value)])} />
    </aside>
  )
}

function repeat(record: RequestRecord): void {
  draft.value = toDraft(record)
  navigate(['routes', 'try'])
}

/** The clipboard needs a secure context, which loopback is. */
async function copy(record: RequestRecord): Promise<void> {
  const { method, url, headers } = toDraft(record)
  const listener = overview.value?.listeners.find(({ key }) => key === `${record.gateway}.${record.listener}`)
  const scheme = listener?.protocol === 'HTTPS' ? 'https' : 'http'
  const path = url.slice(record.host.length)
  const fields = [`host: ${record.host}`, ...headers.split('\n').filter(Boolean)].map((field) => ` -H ${shellWord(field)}`).join('')
  const text = `curl -i -X ${shellWord(method)}${fields} ${shellWord(`${scheme}://127.0.0.1:${listener?.port ?? 80}${path}`)}`
  try {
    await navigator.clipboard.writeText(text)
    isCopied.value = true
  } catch {
    isCopied.value = false
  }
}

function Phases({ record }: { readonly record: RequestRecord }) {
  const total = Math.max(0.001, record.durationMs)
  return (
    <section>
      <h3>Time</h3>
      <table class="phases">
        <tbody>
          {phasesOf(record).map(({ label, startMs, durationMs, tone }) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td class="bars">
                <svg width="100%" height="12" aria-hidden="true">
                  <rect class={`is-${tone}`} x={`${(startMs / total) * 99}%`} width={`${Math.max(0.6, (durationMs / total) * 99)}%`} y="2" height="8" rx="2" />
                </svg>
              </td>
              <td class="num">{formatMs(durationMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Facts({ record }: { readonly record: RequestRecord }) {
  const route = overview.value?.routes.find(({ namespace, name }) => `${namespace}/${name}` === record.route)
  const facts: (readonly [label: string, value: ComponentChildren])[] = [
    ['Received', `${formatTime(record.timeMs)}, ${record.version} from ${record.client}`],
    ['Host', record.host],
    ['Listener', record.listener === null ? undefined : `${record.gateway ?? ''}.${record.listener}`],
    ['Route', record.route !== null && (route ? <a href={linkTo(['routes', route.kind, route.namespace, route.name])}>{record.route}</a> : record.route)],
    ['Rule', record.rule],
    ['Backend', record.backend],
    ['Endpoint', record.endpoint],
    ['Reason', record.reason],
    ['Retries', record.retries > 0 && String(record.retries)],
    ['Body', `${formatBytes(record.requestBytes)} received, ${formatBytes(record.responseBytes)} sent`],
    ['Duration', formatMs(record.durationMs)],
    ['Pod', record.pod],
  ]
  return (
    <section>
      <h3>Where it went</h3>
      <dl class="pairs">
        {facts
          .filter(([, value]) => value !== undefined && value !== null && value !== false && value !== '')
          .map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </section>
  )
}

function Fields({ title, fields }: { readonly title: string; readonly fields: readonly (readonly [string, string])[] }) {
  if (fields.length === 0) return null
  return (
    <section>
      <h3>{title}</h3>
      <dl class="pairs headers">
        {fields.map(([name, value], index) => (
          <div key={index}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
