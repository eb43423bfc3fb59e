import { describe, expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { compileWindows } from './budget-window.ts'

const at = (text: string): number => Date.parse(text)
const edges = (window: string, timeZone: string | undefined, time: string): string[] => {
  const { startMs, endMs } = compileWindows(window, timeZone).at(at(time))
  return [startMs, endMs].map((ms) => new Date(ms).toISOString())
}

describe('a calendar window', () => {
  test.each([
    ['Hour', 'UTC', '2026-11-23T10:49:18Z', '2026-11-23T10:00:00.000Z', '2026-11-23T11:00:00.000Z'],
    ['Day', 'UTC', '2026-11-23T00:00:00Z', '2026-11-23T00:00:00.000Z', '2026-11-24T00:00:00.000Z'],
    ['Week', 'UTC', '2026-11-29T23:59:59Z', '2026-11-23T00:00:00.000Z', '2026-11-30T00:00:00.000Z'],
    ['Month', 'UTC', '2026-12-31T12:00:00Z', '2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['Day', 'America/New_York', '2026-11-23T04:59:59Z', '2026-11-22T05:00:00.000Z', '2026-11-23T05:00:00.000Z'],
    ['Month', 'Asia/Kolkata', '2026-11-30T18:30:00Z', '2026-11-30T18:30:00.000Z', '2026-12-31T18:30:00.000Z'],
    ['Hour', 'Asia/Kolkata', '2026-11-23T10:29:59Z', '2026-11-23T09:30:00.000Z', '2026-11-23T10:30:00.000Z'],
    // Clocks are set back in this night, and forward in the next one: the day has 25 hours, then 23.
    ['Day', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
    ['Day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
    ['Month', 'Europe/Berlin', '2026-03-15T12:00:00Z', '2026-02-28T23:00:00.000Z', '2026-03-31T22:00:00.000Z'],
  ])('%s in %s at %s is from %s to %s', (window, zone, time, start, end) => {
    expect(edges(window, zone, time)).toEqual([start, end])
  })

  test('an unknown time zone counts as UTC', () => {
    expect(edges('Day', 'Europe/Nowhere', '2026-11-23T10:00:00Z')).toEqual(edges('Day', 'UTC', '2026-11-23T10:00:00Z'))
  })

  test('windows follow each other without gaps, and their numbers count up', () => {
    const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe', 'Pacific/Chatham')
    const times = fc.integer({ min: at('1990-01-01T00:00:00Z'), max: at('2090-01-01T00:00:00Z') })
    fc.assert(
      fc.property(fc.constantFrom('Hour', 'Day', 'Week', 'Month', '90s'), zones, times, (unit, zone, time) => {
        const windows = compileWindows(unit, zone)
        const window = windows.at(time)
        const next = windows.at(window.endMs)
        expect(window.startMs).toBeLessThanOrEqual(time)
        expect(window.endMs).toBeGreaterThan(time)
        expect(windows.at(window.endMs - 1).index).toBe(window.index)
        // Lord Howe moves its clocks by half an hour: an hour there is cut.
        if (unit !== 'Hour') expect([next.startMs, next.index]).toEqual([window.endMs, window.index + 1])
      }),
    )
  })
})

test('a duration is a rolling window', () => {
  expect(compileWindows('1m').isRolling).toBe(true)
  expect(compileWindows('1m').at(90_000)).toEqual({ index: 1, startMs: 60_000, endMs: 120_000 })
})
