import type { BudgetUse } from '#api/management/budgets.ts'
import type { Spend, SpendRow } from '#api/management/spend.ts'
import { useEffect, useState } from 'preact/hooks'
import { overview } from '../../api/live.ts'
import { useResource } from '../../api/resource.ts'
import { Chart } from '../../ui/chart.tsx'
import { formatNumber } from '../../ui/format.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { BudgetCharts } from './budgets.tsx'
import { fill } from './forecast.ts'
import { formatDay, formatUsd } from './units.ts'

const INTERVAL_MS = 15_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const SHOWN = 100

/** Time that a report covers, and the periods of its chart. */
const spans = [
  { name: '24 hours', lengthMs: DAY_MS, by: 'hour', periodMs: HOUR_MS },
  { name: '7 days', lengthMs: 7 * DAY_MS, by: 'hour', periodMs: HOUR_MS },
  { name: '30 days', lengthMs: 30 * DAY_MS, by: 'day', periodMs: DAY_MS },
  { name: '90 days', lengthMs: 90 * DAY_MS, by: 'day', periodMs: DAY_MS },
] as const
type Span = (typeof spans)[number]

const dimensions = ['model', 'team', 'user', 'key', 'route', 'provider', 'status', 'guard'] as const

export function SpendPage() {
  const [span, setSpan] = useState<Span>(spans[1])
  const [by, setBy] = useState<string>(dimensions[0])
  const untilMs = useMinute()
  const range = `since=${untilMs - span.lengthMs}&until=${untilMs}`
  // A report that does not exist is not asked for: browsers log it as an error.
  const hasLedger = overview.value && overview.value.ledger !== false
  const pathOf = (dimension: string): string | undefined => (hasLedger === true ? `/api/v1/spend?by=${dimension}&${range}` : undefined)
  const periods = useResource<Spend>(pathOf(span.by), INTERVAL_MS)
  const groups = useResource<Spend>(pathOf(by), INTERVAL_MS)
  const budgets = useResource<BudgetUse>('/api/v1/budgets?history=true', INTERVAL_MS)
  return (
    <>
      <PageHead title="Spend">
        <span class="grow" />
        <Choice
          label="Time"
          value={span.name}
          options={spans.map(({ name }) => name)}
          onChange={(name) => setSpan(spans.find((one) => one.name === name) ?? spans[1])}
        />
      </PageHead>
      {hasLedger === false ? <NoLedger /> : <Ledger span={span} untilMs={untilMs} periods={periods} groups={groups} by={by} onBy={setBy} />}
      {budgets.error !== undefined && <ErrorBox title="The budgets cannot be read" message={budgets.error.message} />}
      {budgets.value !== undefined && <BudgetCharts use={budgets.value} />}
    </>
  )
}

/** The end of the current minute, so that a report is not read again for each second. */
function useMinute(): number {
  const minute = (): number => Math.ceil(Date.now() / 60_000) * 60_000
  const [value, setValue] = useState(minute)
  useEffect(() => {
    const timer = setInterval(() => setValue(minute()), 10_000)
    return () => clearInterval(timer)
  }, [])
  return value
}

const NoLedger = () => (
  <Panel title="Request log">
    <Empty title="This gateway keeps no request log">
      <span>config.ledger of the config file, or of rawConfig in ProxyParameters, records what each request costs.</span>
    </Empty>
  </Panel>
)

interface LedgerProps {
  readonly span: Span
  readonly untilMs: number
  readonly periods: ReturnType<typeof useResource<Spend>>
  readonly groups: ReturnType<typeof useResource<Spend>>
  readonly by: string
  readonly onBy: (by: string) => void
}

function Ledger({ span, untilMs, periods, groups, by, onBy }: LedgerProps) {
  const error = periods.error ?? groups.error
  if (error !== undefined) return <ErrorBox title="The request log cannot be read" message={error.message} />
  if (periods.value === undefined) return <Loading />
  const { rows } = periods.value
  const { times, values } = fill(rows, untilMs - span.lengthMs, untilMs, span.periodMs)
  const sum = (value: (row: SpendRow) => number): number => rows.reduce((total, row) => total + value(row), 0)
  const cost = sum((row) => row.cost)
  const unpriced = sum((row) => row.unpriced)
  return (
    <>
      <dl class="tiles">
        {[
          ['Cost', formatUsd(cost)],
          ['Per day', formatUsd((cost / span.lengthMs) * DAY_MS)],
          ['Requests', formatNumber(sum((row) => row.requests))],
          ['Tokens in', formatNumber(sum((row) => row.inputTokens))],
          ['Tokens out', formatNumber(sum((row) => row.outputTokens))],
          ['Without a price', formatNumber(unpriced)],
        ].map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Panel title={`Cost per ${span.by}`} aside={`last ${span.name}`}>
        <Chart
          label={`Cost per ${span.by} over the last ${span.name}, ${formatUsd(cost)} in all`}
          times={times}
          lines={[{ label: 'cost', color: '--accent', isFilled: true }]}
          values={[values]}
          format={formatUsd}
          {...(span.lengthMs > DAY_MS && { formatTime: formatDay })}
        />
      </Panel>
      <Panel title="Groups" aside={<Choice label="By" value={by} options={dimensions} onChange={onBy} />}>
        <Groups rows={groups.value?.rows ?? []} by={by} total={cost} />
      </Panel>
    </>
  )
}

function Groups({ rows, by, total }: { readonly rows: readonly SpendRow[]; readonly by: string; readonly total: number }) {
  if (rows.length === 0) return <Empty title="No request was recorded in this time" />
  return (
    <Scroll label={`Cost by ${by}`}>
      <table class="spend">
        <thead>
          <tr>
            <th>{by.slice(0, 1).toUpperCase() + by.slice(1)}</th>
            {['Requests', 'Errors', 'Tokens in', 'Tokens out', 'Cost', 'Share'].map((title) => (
              <th key={title} class="num">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row) => (
            <tr key={JSON.stringify(row.group)}>
              <td class="mono">{row.group[0] ?? '–'}</td>
              <td class="num">{formatNumber(row.requests)}</td>
              <td class="num">{formatNumber(row.errors)}</td>
              <td class="num">{formatNumber(row.inputTokens)}</td>
              <td class="num">{formatNumber(row.outputTokens)}</td>
              <td class="num">{formatUsd(row.cost)}</td>
              <td class="num">{total === 0 ? '–' : `${Math.round((row.cost / total) * 100)} %`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly options: readonly string[]
  readonly onChange: (value: string) => void
}

const Choice = ({ label, value, options, onChange }: ChoiceProps) => (
  <label class="check">
    {label}
    <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  </label>
)
