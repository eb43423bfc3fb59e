import { useEffect, useRef, useState } from 'preact/hooks'

interface ValueTextProps {
  readonly class?: string
  readonly label?: string
  readonly children: string | undefined
}

/** Text of several lines. It can be scrolled with the keyboard if it is longer than its box. */
export function ValueText({ class: name = 'value', label, children }: ValueTextProps) {
  const element = useRef<HTMLPreElement>(null)
  const [isLong, setLong] = useState(false)
  useEffect(() => {
    const { current } = element
    if (current === null) return undefined
    const measure = (): void => setLong(current.scrollHeight > current.clientHeight || current.scrollWidth > current.clientWidth)
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    measure()
    return () => observer.disconnect()
  }, [children])
  return (
    <pre ref={element} class={name} tabIndex={isLong ? 0 : undefined} aria-label={label}>
      {children}
    </pre>
  )
}
