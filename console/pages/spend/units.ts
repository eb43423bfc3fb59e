import type { BudgetRow } from '#api/management/budgets.ts'
import { formatNumber } from '../../ui/format.ts'

/** US dollars: `12.30 $`, `0.0042 $`. */
export const formatUsd = (amount: number): string => `${amount === 0 || amount >= 1 ? amount.toFixed(2) : amount.toPrecision(2)} $`

/** An amount of a budget with its unit. */
export const formatAmount = (amount: number, unit: BudgetRow['unit']): string =>
  unit === 'usd' ? formatUsd(amount) : `${formatNumber(Math.floor(amount))} ${unit}`

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 2 })

/** A short amount for the axis of a chart. */
export const formatShort = (amount: number, unit: BudgetRow['unit']): string => (unit === 'usd' ? formatUsd(amount) : compact.format(amount))

/** Day and time of a Unix time in seconds. */
export const formatDay = (time: number): string => {
  const date = new Date(time * 1000)
  return `${date.toLocaleDateString('en-GB', { day: '2-digit', month: '2-digit' })} ${date.toLocaleTimeString('en-GB').slice(0, 5)}`
}
