import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isConnected, overview, useLive } from '../api/live.ts'
import { ErrorBox, Loading } from '../ui/states.tsx'
import { formatAge } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { installShortcuts } from './keyboard.ts'
import { pages, type Page } from './pages.ts'
import { linkTo, location } from '../ui/router.ts'
import { switchTheme, theme } from '../ui/theme.ts'

const isHelpOpen = signal(false)

export function Shell() {
  useLive()
  useEffect(() => installShortcuts({ onHelp: () => (isHelpOpen.value = true) }), [])
  const page = pages.find(({ name }) => name === location.value.parts[0]) ?? pages[0]
  useEffect(() => {
    document.title = `${page?.title ?? ''} · Proxy Service`
  }, [page])
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to content
      </a>
      <Navigation current={page} />
      <main id="main" tabIndex={-1}>
        {page && <PageView key={page.name} page={page} />}
      </main>
      {isHelpOpen.value && <Help />}
    </div>
  )
}

function skipToMain(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

function Navigation({ current }: { readonly current: Page | undefined }) {
  const list = useRef<HTMLElement>(null)
  useEffect(() => {
    // On a phone the list is wider than the screen.
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [current])
  return (
    <header class="side">
      <a class="brand" href="#/overview">
        <Icon path="M3 10h3m8-5h3M14 10h3m-3 5h3M6 10c4 0 4-5 8-5M6 10h8m-8 0c4 0 4 5 8 5" />
        <span>Proxy Service</span>
      </a>
      <nav aria-label="Pages" ref={list}>
        {pages.map(({ name, title, icon, key }) => (
          <a key={name} href={linkTo([name])} aria-current={current?.name === name ? 'page' : undefined}>
            <Icon path={icon} />
            <span>{title}</span>
            <kbd aria-hidden="true">g {key}</kbd>
          </a>
        ))}
      </nav>
      <Status />
    </header>
  )
}

function Status() {
  const replicas = overview.value?.replicas ?? []
  const state = isConnected.value
  const [first] = replicas
  return (
    <div class="status">
      <p class={`live ${state === false ? 'is-off' : 'is-on'}`} role="status">
        {state === undefined ? 'connecting' : state ? (replicas.length > 1 ? `${replicas.length} replicas` : 'live') : 'no connection'}
      </p>
      {first && (
        <p class="muted">
          {first.version} · up {formatAge(Date.now() - Math.min(...replicas.map(({ startedAtMs }) => startedAtMs)))}
        </p>
      )}
      <div class="buttons">
        <button type="button" class="quiet" onClick={switchTheme}>
          Theme: {theme.value}
        </button>
        <button type="button" class="quiet" aria-label="Keyboard shortcuts" onClick={() => (isHelpOpen.value = true)}>
          ?
        </button>
      </div>
    </div>
  )
}

function PageView({ page }: { readonly page: Page }) {
  const [loaded, setLoaded] = useState<{ readonly View: ComponentType }>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    page.load().then((View) => setLoaded({ View }), setError)
  }, [page])
  if (error) return <ErrorBox title={`${page.title} cannot be loaded`} message={error.message} />
  return loaded ? <loaded.View /> : <Loading />
}

function Help() {
  const close = (): void => void (isHelpOpen.value = false)
  const shortcuts = [['/', 'search this page, or the routes'], ...pages.map(({ key, title }) => [`g ${key}`, title]), ['?', 'this list'], ['Esc', 'close']]
  return (
    <dialog class="help" ref={(dialog) => void (dialog !== null && !dialog.open && dialog.showModal())} onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keyboard</h2>
      <dl>
        {shortcuts.map(([keys, text]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
