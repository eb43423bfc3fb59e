import type { BudgetRow, BudgetUse } from '#api/management/budgets.ts'
import { useResource } from '../../api/resource.ts'
import { formatNumber, formatPercent } from '../../ui/format.ts'
import { Badge, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { ErrorBox } from '../../ui/states.tsx'

const INTERVAL_MS = 2000
const SHOWN = 100

/** What is left of budgets, by key. Nothing if no budget has requests in its window. */
export function Budgets() {
  const { value, error } = useResource<BudgetUse>('/api/v1/budgets', INTERVAL_MS)
  if (error !== undefined) return <ErrorBox title="The budgets cannot be read" message={error.message} />
  if (value === undefined || value.rows.length === 0) return null
  const hasPods = value.rows.some(({ pod }) => pod !== undefined)
  const shown = value.rows.slice(0, SHOWN)
  return (
    <Panel title="Budgets" aside={value.isCut || value.rows.length > SHOWN ? `the ${shown.length} with the highest used part` : undefined}>
      <Scroll label="What is left of budgets">
        <table class="budgets">
          <thead>
            <tr>
              <th>Budget</th>
              <th>Key</th>
              {hasPods && <th>Pod</th>}
              <th>Limit</th>
              <th class="num">Used</th>
              <th class="num">Left</th>
              <th>State</th>
              <th>Window ends</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={JSON.stringify([row.policy, row.budget, row.unit, row.window, row.key, row.pod])}>
                <td>
                  {row.budget} <span class="muted">{row.policy}</span>
                </td>
                <td class="mono key" title={row.key ?? undefined}>
                  {row.key ?? '–'}
                </td>
                {hasPods && <td>{row.pod}</td>}
                <td>
                  {formatAmount(row.limit, row.unit)} per {row.window}
                </td>
                <td class="num">{formatPercent(row.used / row.limit)}</td>
                <td class="num">{formatAmount(row.left, row.unit)}</td>
                <td>
                  <State row={row} />
                </td>
                <td>{new Date(row.windowEndMs).toLocaleString('en-GB', { dateStyle: 'short', timeStyle: 'short' })}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}

function State({ row: { left, isNearEnd } }: { readonly row: BudgetRow }) {
  if (left === 0) return <Badge tone="bad">used up</Badge>
  return isNearEnd ? <Badge tone="warn">near its end</Badge> : <Badge tone="good">open</Badge>
}

function formatAmount(amount: number, unit: BudgetRow['unit']): string {
  if (unit !== 'usd') return `${formatNumber(Math.floor(amount))} ${unit}`
  return `${amount === 0 || amount >= 1 ? amount.toFixed(2) : amount.toPrecision(2)} USD`
}
