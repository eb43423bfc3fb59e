import { badArgument } from '../error.ts'
import { Duration, Timestamp, parseOffset } from '../time.ts'
import type { Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

/** A date whose UTC fields are the local time in a zone; undefined if the zone is unknown. */
function toLocal(timestamp: Timestamp, zone: string): Date | undefined {
  const offset = parseOffset(zone)
  if (offset !== undefined) return new Date(timestamp.ms + offset * 60_000)
  const format = findFormat(zone)
  if (format === undefined) return undefined
  const parts: Record<string, number> = {}
  for (const { type, value } of format.formatToParts(timestamp.ms)) parts[type] = Number(value)
  const date = new Date(0)
  date.setUTCFullYear(parts['year'] ?? 0, (parts['month'] ?? 1) - 1, parts['day'] ?? 1)
  date.setUTCHours(parts['hour'] ?? 0, parts['minute'] ?? 0, parts['second'] ?? 0, ((timestamp.ms % 1000) + 1000) % 1000)
  return date
}

/** Formats are slow to create. There are about 600 zones, which bounds the cache; unknown names are not cached. */
const formats = new Map<string, Intl.DateTimeFormat>()

function findFormat(zone: string): Intl.DateTimeFormat | undefined {
  const known = formats.get(zone)
  if (known) return known
  // Intl also accepts offsets such as `+0130` and names in any case, which would fill the cache.
  if (zone.length > 64 || !/^[A-Z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/.test(zone) || formats.size > 1000) return undefined
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      calendar: 'gregory',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(zone, format)
    return format
  } catch {
    return undefined
  }
}

function dayOfYear(date: Date): number {
  const start = new Date(0)
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1)
  return Math.floor((date.getTime() - start.getTime()) / 86_400_000)
}

const getters: Readonly<Record<string, (date: Date) => number>> = {
  getDate: (date) => date.getUTCDate(),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDayOfWeek: (date) => date.getUTCDay(),
  getDayOfYear: dayOfYear,
  getFullYear: (date) => date.getUTCFullYear(),
  getHours: (date) => date.getUTCHours(),
  getMilliseconds: (date) => date.getUTCMilliseconds(),
  getMinutes: (date) => date.getUTCMinutes(),
  getMonth: (date) => date.getUTCMonth(),
  getSeconds: (date) => date.getUTCSeconds(),
}

const NANOS_PER: Readonly<Record<string, bigint>> = { getHours: 3_600_000_000_000n, getMinutes: 60_000_000_000n, getSeconds: 1_000_000_000n }

function readDuration({ nanos }: Duration, getter: string): Value {
  // getMilliseconds returns the milliseconds within the second; the other getters return the whole duration in their unit.
  if (getter === 'getMilliseconds') return (nanos / 1_000_000n) % 1000n
  const size = NANOS_PER[getter]
  return size === undefined ? undefined : nanos / size
}

export const timeMethods: FunctionTable = Object.fromEntries(
  Object.entries(getters).flatMap(([name, read]) => [
    [
      `${name}/0`,
      (value: Value) => {
        if (value instanceof Duration) return readDuration(value, name)
        return value instanceof Timestamp ? BigInt(read(new Date(value.ms))) : undefined
      },
    ],
    [
      `${name}/1`,
      (value: Value, zone: Value) => {
        if (!(value instanceof Timestamp) || typeof zone !== 'string') return undefined
        const local = toLocal(value, zone)
        return local === undefined ? badArgument : BigInt(read(local))
      },
    ],
  ]),
)
