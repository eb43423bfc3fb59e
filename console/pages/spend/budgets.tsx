import type { BudgetRow, BudgetUse } from '#api/management/budgets.ts'
import { useState } from 'preact/hooks'
import { Chart } from '../../ui/chart.tsx'
import { formatAge, formatPercent } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Empty } from '../../ui/states.tsx'
import { burnDown, forecast, windowStart } from './forecast.ts'
import { formatAmount, formatDay, formatShort } from './units.ts'

/** Charts that are shown at first, and with each click. */
const STEP = 6
const DAY_MS = 86_400_000

/** What is left of each budget over its window, and when it will be used up. */
export function BudgetCharts({ use }: { readonly use: BudgetUse }) {
  const [count, setCount] = useState(STEP)
  const { rows, timeMs } = use
  if (rows.length === 0)
    return (
      <Panel title="Budgets">
        <Empty title="No budget has requests in its window" />
      </Panel>
    )
  return (
    <>
      <div class="burn-downs">
        {rows.slice(0, count).map((row) => (
          <BurnDownPanel key={JSON.stringify([row.policy, row.budget, row.unit, row.window, row.key, row.pod])} row={row} nowMs={timeMs} />
        ))}
      </div>
      {rows.length > count && (
        <button type="button" onClick={() => setCount(count + STEP)}>
          Show more of {rows.length} budgets
        </button>
      )}
    </>
  )
}

function BurnDownPanel({ row, nowMs }: { readonly row: BudgetRow; readonly nowMs: number }) {
  const { times, left, ahead } = burnDown(row, nowMs)
  const isLong = row.windowEndMs - windowStart(row) > DAY_MS
  const name = row.key === null ? row.budget : `${row.budget}: ${row.key}`
  return (
    <Panel class="burn-down" title={name} aside={<State row={row} nowMs={nowMs} />}>
      <Chart
        label={`What is left of the budget ${name}: ${formatAmount(row.left, row.unit)} of ${formatAmount(row.limit, row.unit)}`}
        times={times}
        lines={[
          { label: 'left', color: '--accent', isFilled: true },
          { label: 'forecast', color: '--warn', isDashed: true },
        ]}
        values={[left, ahead]}
        format={(value) => formatShort(value, row.unit)}
        height={130}
        {...(isLong && { formatTime: formatDay })}
      />
      <p class="muted">
        {formatAmount(row.used, row.unit)} of {formatAmount(row.limit, row.unit)} per {row.window} ({formatPercent(row.used / row.limit)}), {row.policy}
        {row.pod !== undefined && `, ${row.pod}`}
      </p>
    </Panel>
  )
}

function State({ row, nowMs }: { readonly row: BudgetRow; readonly nowMs: number }) {
  const { usedUpMs } = forecast(row, nowMs)
  if (row.left === 0) return <Badge tone="bad">used up until {formatDay(row.windowEndMs / 1000)}</Badge>
  if (usedUpMs === undefined) return <Badge tone={row.isNearEnd ? 'warn' : 'good'}>lasts until the end of the window</Badge>
  return (
    <Badge tone="warn">
      used up {formatDay(usedUpMs / 1000)}, in {formatAge(usedUpMs - nowMs)}
    </Badge>
  )
}
