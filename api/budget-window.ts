import { isTimeZone } from './budget.ts'
import { parseDuration } from './duration.ts'

/** A period of time in which spending is added up. Times are milliseconds since 1970. */
interface Window {
  /** Number of the window; the next one has the next number. */
  readonly index: number
  readonly startMs: number
  readonly endMs: number
}

/** Windows of one limit. */
export interface Windows {
  /** Spending of the previous window counts for the part of it that is less than one window ago. */
  readonly isRolling: boolean
  at(epochMs: number): Window
}

type Calendar = 'Hour' | 'Day' | 'Week' | 'Month'

const DAY_MS = 86_400_000
/** 1970-01-01 was a Thursday; weeks begin on Monday. */
const DAYS_TO_MONDAY = 3

/** Windows of `Hour`, `Day`, `Week`, `Month` in a time zone, or of a duration. An unknown zone is UTC: the operator has reported it. */
export function compileWindows(window: string, timeZone = 'UTC'): Windows {
  if (window !== 'Hour' && window !== 'Day' && window !== 'Week' && window !== 'Month') return rolling(Math.max(1000, parseDuration(window) ?? 1000))
  const offsetMs = zoneOffset(timeZone)
  let last: Window | undefined
  return {
    isRolling: false,
    at(epochMs) {
      if (last === undefined || epochMs < last.startMs || epochMs >= last.endMs) last = calendarWindow(window, epochMs, offsetMs)
      return last
    },
  }
}

function rolling(lengthMs: number): Windows {
  return {
    isRolling: true,
    at(epochMs) {
      const index = Math.floor(epochMs / lengthMs)
      return { index, startMs: index * lengthMs, endMs: (index + 1) * lengthMs }
    },
  }
}

function calendarWindow(unit: Calendar, epochMs: number, offsetMs: ZoneOffset): Window {
  // Hours count elapsed time, so that the hour that clocks repeat in autumn is two windows. Zones differ from UTC by quarters of hours.
  if (unit === 'Hour') {
    const shift = ((offsetMs(epochMs) % 3_600_000) + 3_600_000) % 3_600_000
    const index = Math.floor((epochMs + shift) / 3_600_000)
    return { index, startMs: index * 3_600_000 - shift, endMs: (index + 1) * 3_600_000 - shift }
  }
  const local = epochMs + offsetMs(epochMs)
  const index = indexOf(unit, local)
  return { index, startMs: toEpoch(startOf(unit, index), offsetMs), endMs: toEpoch(startOf(unit, index + 1), offsetMs) }
}

/** Number of the window that contains a local time, which is written as if it were UTC. */
function indexOf(unit: Calendar, localMs: number): number {
  const days = Math.floor(localMs / DAY_MS)
  if (unit === 'Day') return days
  if (unit === 'Week') return Math.floor((days + DAYS_TO_MONDAY) / 7)
  const date = new Date(localMs)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

function startOf(unit: Calendar, index: number): number {
  if (unit === 'Day') return index * DAY_MS
  if (unit === 'Week') return (index * 7 - DAYS_TO_MONDAY) * DAY_MS
  return Date.UTC(Math.floor(index / 12), index % 12)
}

/** Difference of local time and UTC at a time, in milliseconds. */
type ZoneOffset = (epochMs: number) => number

/** The time at which clocks of a zone show a local time. The second step is for a change of clocks between the guess and the result. */
function toEpoch(localMs: number, offsetMs: ZoneOffset): number {
  const guess = localMs - offsetMs(localMs)
  return localMs - offsetMs(guess)
}

function zoneOffset(timeZone: string): ZoneOffset {
  if (timeZone === 'UTC' || !isTimeZone(timeZone)) return () => 0
  const digits = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const
  const format = new Intl.DateTimeFormat('en-US', { timeZone, calendar: 'gregory', hourCycle: 'h23', ...digits })
  return (epochMs) => {
    const parts = Object.fromEntries(format.formatToParts(epochMs).map(({ type, value }) => [type, Number(value)]))
    const { year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(epochMs / 1000) * 1000
  }
}
