import type { ComponentChildren } from 'preact'

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  )
}

export function ErrorBox({ title, message }: { readonly title: string; readonly message: string }) {
  return (
    <div class="notice is-error" role="alert">
      <strong>{title}</strong>
      <p>{message}</p>
    </div>
  )
}

/** What stands where there is no data yet, and what to do about it. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children}
    </div>
  )
}
