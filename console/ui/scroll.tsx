import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface ScrollProps {
  /** The name of the table for screen readers. */
  readonly label: string
  readonly class?: string
  /** On a phone, each row is a list of its cells with their titles. Default; not for rows that are compared by column. */
  readonly isList?: boolean
  readonly children: ComponentChildren
}

/** The frame of a table that may be wider than the page: it scrolls, with the keyboard too, and shades the side at which columns are hidden. */
export function Scroll({ label, class: name = '', isList = true, children }: ScrollProps) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isList && frame.current !== null) nameCells(frame.current)
  })
  return (
    <div ref={frame} class={`scroll ${isList ? 'is-list' : ''} ${name}`} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  )
}

/** Each cell gets the title of its column, which the style sheet shows on a phone. */
function nameCells(frame: HTMLElement): void {
  const titles = Array.from(frame.querySelectorAll('thead th'), ({ textContent }) => textContent)
  for (const row of frame.querySelectorAll<HTMLTableRowElement>('tbody tr')) {
    let column = 0
    for (const cell of row.cells) {
      if (cell.dataset['title'] !== titles[column]) cell.dataset['title'] = titles[column] ?? ''
      column += cell.colSpan
    }
  }
}
