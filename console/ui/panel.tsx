import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface PanelProps {
  readonly title: string
  /** Beside the title, such as a number or buttons. */
  readonly aside?: ComponentChildren
  readonly class?: string
  readonly children: ComponentChildren
}

export function Panel({ title, aside, children, class: name = '' }: PanelProps) {
  const id = useId()
  return (
    <section class={`panel ${name}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside !== undefined && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  )
}

export function PageHead({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <h1>{title}</h1>
      {children}
    </header>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain' | 'accent'

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge is-${tone}`}>{children}</span>
}

/** The tone of an HTTP status; 0: no response was sent. */
export function toneOfStatus(status: number): Tone {
  if (status >= 500 || status === 0) return 'bad'
  return status >= 400 ? 'warn' : status >= 300 ? 'accent' : 'good'
}
