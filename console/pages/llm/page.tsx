import type { LlmRow, LlmUsage } from '#api/management/llm.ts'
import { overview } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { formatMs, formatNumber, formatTime } from '../../ui/format.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { linkTo, location } from '../../ui/router.ts'
import { Budgets } from './budgets.tsx'
import { GuardsView } from './guards.tsx'
import { PlaygroundView } from './playground.tsx'
import { Providers } from './providers.tsx'

const INTERVAL_MS = 2000
const SHOWN = 200

export function LlmPage() {
  const [, view] = location.value.parts
  return view === 'playground' ? <PlaygroundView /> : view === 'guards' ? <GuardsView /> : <NumbersView />
}

function NumbersView() {
  const { value, error } = useResource<LlmUsage>('/api/v1/llm', INTERVAL_MS)
  const backends = (overview.value?.backends ?? []).filter(({ kind }) => kind === 'ai')
  return (
    <>
      <PageHead title="LLM">
        {value && <span class="muted">since {formatTime(value.sinceMs).slice(0, 8)}, at most 15 minutes</span>}
        <span class="grow" />
        <a class="button" href={linkTo(['llm', 'playground'])}>
          Playground
        </a>
        <a class="button" href={linkTo(['llm', 'guards'])}>
          Guards
        </a>
      </PageHead>
      {error !== undefined && <ErrorBox title="The numbers cannot be read" message={error.message} />}
      {value === undefined ? error === undefined && <Loading /> : <Usage rows={value.rows} hasBackends={backends.length > 0} />}
      <Budgets />
      {backends.length > 0 && <Providers backends={backends} />}
    </>
  )
}

function Usage({ rows, hasBackends }: Pick<LlmUsage, 'rows'> & { readonly hasBackends: boolean }) {
  if (rows.length === 0 && !hasBackends)
    return (
      <Panel title="Models">
        <Empty title="No backend has an LLM provider">
          <code>make run DIR=e2e/examples/llm-providers</code>
        </Empty>
      </Panel>
    )
  if (rows.length === 0)
    return (
      <Panel title="Models">
        <Empty title="No LLM request finished since this page was opened">
          <span>Recording starts when the page is opened for the first time. Send a request in the playground.</span>
        </Empty>
      </Panel>
    )
  const sorted = rows.toSorted((a, b) => b.requests - a.requests)
  return (
    <>
      <Totals rows={rows} />
      <Panel title="Models" aside={rows.length > SHOWN ? `${SHOWN} of ${rows.length} rows` : undefined}>
        <Scroll label="Numbers of models">
          <table class="llm">
            <thead>
              <tr>
                {['Model', 'Provider', 'API key', 'Route'].map((title) => (
                  <th key={title}>{title}</th>
                ))}
                {['Requests', 'Tokens in', 'Cached', 'Tokens out', 'Cost, USD', 'First token', 'Tokens/s'].map((title) => (
                  <th key={title} class="num">
                    {title}
                  </th>
                ))}
                <th>Errors</th>
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, SHOWN).map((row) => (
                <Row key={JSON.stringify([row.model, row.provider, row.key, row.route])} row={row} />
              ))}
            </tbody>
          </table>
        </Scroll>
      </Panel>
    </>
  )
}

function Row({ row }: { readonly row: LlmRow }) {
  return (
    <tr>
      <td class="mono">{row.model}</td>
      <td>{row.provider}</td>
      <td>{row.key ?? '–'}</td>
      <td>{row.route}</td>
      <td class="num">{formatNumber(row.requests)}</td>
      <td class="num">{formatNumber(row.inputTokens)}</td>
      <td class="num">{formatNumber(row.cachedTokens)}</td>
      <td class="num">{formatNumber(row.outputTokens)}</td>
      <td class="num">{formatCost(row.cost)}</td>
      <td class="num">{row.streams === 0 ? '–' : formatMs((row.firstTokenSeconds / row.streams) * 1000)}</td>
      <td class="num">{row.generationSeconds === 0 ? '–' : formatNumber(row.generatedTokens / row.generationSeconds)}</td>
      <td>{errorsOf(row)}</td>
    </tr>
  )
}

function Totals({ rows }: Pick<LlmUsage, 'rows'>) {
  const sum = (value: (row: LlmRow) => number): number => rows.reduce((total, row) => total + value(row), 0)
  const tiles = [
    ['Requests', formatNumber(sum(({ requests }) => requests))],
    ['Tokens in', formatNumber(sum(({ inputTokens }) => inputTokens))],
    ['Tokens out', formatNumber(sum(({ outputTokens }) => outputTokens))],
    ['Cost, USD', formatCost(sum(({ cost }) => cost))],
    ['Errors', formatNumber(sum((row) => classesOf(row).reduce((total, [, count]) => total + count, 0)))],
  ]
  return (
    <dl class="tiles">
      {tiles.map(([title, value]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

const classesOf = (row: LlmRow): [string, number][] => [
  ['rate limited', row.rateLimited],
  ['client', row.clientErrors],
  ['server', row.serverErrors],
  ['timeout', row.timeouts],
  ['aborted', row.aborted],
]

function errorsOf(row: LlmRow): string {
  const found = classesOf(row).filter(([, count]) => count > 0)
  return found.length === 0 ? '–' : found.map(([name, count]) => `${formatNumber(count)} ${name}`).join(', ')
}

const formatCost = (cost: number): string => (cost === 0 ? '–' : cost < 1 ? cost.toPrecision(2) : cost.toFixed(2))
