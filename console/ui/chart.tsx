import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { isDark } from './theme.ts'

interface Line {
  readonly label: string
  /** Name of a color variable of the style sheet, such as `--accent`. */
  readonly color: string
  readonly isFilled?: boolean
  readonly isDashed?: boolean
}

interface ChartProps {
  /** Describes the chart for screen readers. */
  readonly label: string
  /** Unix times in seconds. */
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  /** One list of values for each line; null: no value. */
  readonly values: readonly (readonly (number | null)[])[]
  readonly format: (value: number) => string
  readonly height?: number
  /** Prints a Unix time in seconds. Default: time of day. */
  readonly formatTime?: (time: number) => string
}

const timeOfDay = (time: number): string => new Date(time * 1000).toLocaleTimeString('en-GB')

/** Times of an axis, with seconds if two would be equal without them. */
function timesOfDay(_: uPlot, times: readonly number[]): string[] {
  const [first = 0, second = 60] = times
  return times.map((time) => timeOfDay(time).slice(0, second - first < 60 ? 8 : 5))
}

/** Width of the axis of values, by its longest label. */
const widthOf = (_: uPlot, labels: readonly string[] | null): number => 16 + 6.5 * Math.max(4, ...(labels ?? []).map(({ length }) => length))

const last = (values: ArrayLike<number | null | undefined> | undefined): number | null | undefined =>
  Array.from(values ?? []).findLast((value) => value !== null && value !== undefined)

/** Values over time. */
export function Chart({ label, times, lines, values, format, height = 150, formatTime }: ChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(null)
  const dark = isDark.value
  const names = lines.map((line) => line.label).join()
  const data = [times, ...values] as unknown as uPlot.AlignedData
  useEffect(() => {
    const printed = (value: number | null | undefined): string => (value === null || value === undefined ? '–' : format(value))
    const element = host.current
    if (element === null) return undefined
    const style = getComputedStyle(element)
    const color = (name: string): string => style.getPropertyValue(name).trim()
    const axis = { stroke: color('--muted'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui', size: 26 }
    const created = new uPlot(
      {
        width: element.clientWidth,
        height,
        // Half of the label of a time that is at the right end.
        padding: [null, formatTime === undefined ? 28 : 40, null, null],
        cursor: { y: false, drag: { x: false, y: false } },
        scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, space: formatTime === undefined ? 64 : 92, values: formatTime === undefined ? timesOfDay : (_, splits) => splits.map(formatTime) },
          { ...axis, size: widthOf, values: (_, splits) => splits.map(format) },
        ],
        series: [
          { value: (_, time) => (time === null ? '–' : (formatTime ?? timeOfDay)(time)) },
          ...lines.map((line) => ({
            label: line.label,
            stroke: color(line.color),
            width: 1.6,
            ...(line.isFilled === true && { fill: `color-mix(in srgb, ${color(line.color)} 14%, transparent)` }),
            ...(line.isDashed === true && { dash: [4, 4] }),
            // A line needs two values.
            points: { show: (self: uPlot, index: number) => Array.from(self.data[index] ?? []).filter((value) => value !== null).length === 1, size: 5 },
            // Without a pointer, the last value.
            value: (self: uPlot, value: number | null, series: number, index: number | null) => printed(index === null ? last(self.data[series]) : value),
          })),
        ],
      },
      data,
      element,
    )
    plot.current = created
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      created.destroy()
      plot.current = null
    }
    // New values are set below; colors and lines need a new chart.
  }, [dark, names, height])
  useEffect(() => plot.current?.setData(data), [times, values])
  return <div class="chart" ref={host} role="img" aria-label={label} />
}
