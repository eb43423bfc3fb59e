import type { TryResult } from '#api/management/requests.ts'
import { linkTo } from '../../ui/router.ts'
import { formatMs } from '../../ui/format.ts'
import { Badge } from '../../ui/panel.tsx'
import { toSpans, type Span } from './spans.ts'
import { Scroll } from '../../ui/scroll.tsx'

type Trace = NonNullable<TryResult['trace']>

const kinds: Readonly<Record<Span['step']['kind'], string>> = {
  listener: 'Listener',
  route: 'Route',
  policy: 'Policy',
  expression: 'Expression',
  upstream: 'Upstream',
  answer: 'Response',
  item: 'Item',
  model: 'Model',
}

/** Details that the outcome shows already. */
const shown = new Set(['refused', 'masked', 'answered', 'failed', 'status', 'result', 'by', 'kind', 'hidden'])

/** All steps of a traced request over time. */
export function Waterfall({ trace }: { readonly trace: Trace }) {
  const spans = toSpans(trace.steps)
  const total = Math.max(0.001, ...spans.map(({ step, durationMs }) => step.atMs + durationMs))
  return (
    <Scroll label="Steps over time" isList={false}>
      <table class="waterfall">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Decision</th>
            <th scope="col" class="num">
              Start
            </th>
            <th scope="col" class="num">
              Duration
            </th>
            <th scope="col" class="bars">
              0 to {formatMs(total)}
            </th>
          </tr>
        </thead>
        <tbody>
          {spans.map((span, index) => (
            <tr key={index} class={span.depth > 0 ? 'is-nested' : ''}>
              <th scope="row">
                <span class="kind">{kinds[span.step.kind]}</span>
                <Name span={span} />
              </th>
              <td class="wrap">
                {span.outcome.text !== '' && <Badge tone={span.outcome.tone}>{span.outcome.text}</Badge>}
                <Details span={span} />
              </td>
              <td class="num">{formatMs(span.step.atMs)}</td>
              <td class="num">{formatMs(span.durationMs)}</td>
              <td class="bars">
                <svg width="100%" height="14" aria-hidden="true">
                  <rect
                    class={`is-${span.outcome.tone} is-${span.step.kind}`}
                    x={`${(span.step.atMs / total) * 99}%`}
                    y="3"
                    height="8"
                    rx="2"
                    width={`${Math.max(0.6, (span.durationMs / total) * 99)}%`}
                  />
                </svg>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

function Name({ span: { step } }: { readonly span: Span }) {
  const kind = step.detail?.['kind']
  const [namespace = '', name = ''] = step.name.split('/', 2)
  if (step.kind === 'route' && typeof kind === 'string' && name !== '') return <a href={linkTo(['routes', kind, namespace, name])}>{step.name}</a>
  return step.kind === 'expression' ? <code>{step.name}</code> : <>{step.name}</>
}

function Details({ span: { step } }: { readonly span: Span }) {
  const rest = Object.entries(step.detail ?? {}).filter(([name, value]) => !shown.has(name) && value !== '' && !(name === 'attempt' && value === 0))
  if (rest.length === 0) return null
  return <span class="muted details">{rest.map(([name, value]) => `${name} ${name === 'attempt' ? Number(value) + 1 : value}`).join(' · ')}</span>
}
