import { useEffect, useState } from 'preact/hooks'
import type { ConfigVersions } from '#api/management/config.ts'
import { get } from '../../api/client.ts'
import { poll } from '../../api/visible.ts'
import { PageHead, Panel } from '../../ui/panel.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Empty, ErrorBox, Loading } from '../../ui/states.tsx'
import { formatTime } from '../../ui/format.ts'
import { LogLevel } from './log-level.tsx'
import { RawConfig } from './raw.tsx'
import { Versions } from './versions.tsx'

const INTERVAL_MS = 3000

export function ConfigPage() {
  const { data, error } = useVersions()
  if (data === undefined) return error === undefined ? <Loading /> : <ErrorBox title="The versions cannot be read" message={error} />
  return (
    <>
      <PageHead title="Config">
        <span class="muted">version {data.current} is in force</span>
        <span class="grow" />
        <LogLevel />
      </PageHead>
      <Rejections rejections={data.rejections} />
      <Panel title="Applied versions" aside="the last 20">
        {data.versions.length === 0 ? <Empty title="No version was applied yet" /> : <Versions versions={data.versions} />}
      </Panel>
      <RawConfig version={data.current} />
    </>
  )
}

function useVersions(): { data: ConfigVersions | undefined; error: string | undefined } {
  const [data, setData] = useState<ConfigVersions>()
  const [error, setError] = useState<string>()
  useEffect(() => {
    const read = (): void => void get<ConfigVersions>('/api/v1/config/versions').then(setData, (failure: Error) => setError(failure.message))
    return poll(read, INTERVAL_MS)
  }, [])
  return { data, error }
}

function Rejections({ rejections }: Pick<ConfigVersions, 'rejections'>) {
  if (rejections.length === 0) return null
  return (
    <Panel title="Rejected" class="rejected">
      <Scroll label="Rejected versions">
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>From</th>
              <th>Object</th>
              <th>Reason</th>
            </tr>
          </thead>
          <tbody>
            {rejections.map(({ timeMs, source, key, message, pod }) => (
              <tr key={`${timeMs} ${key} ${pod}`}>
                <td>{formatTime(timeMs)}</td>
                <td>
                  {source}
                  {pod === null ? '' : `, pod ${pod}`}
                </td>
                <td class="mono">{key ?? '–'}</td>
                <td class="wrap">{message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </Panel>
  )
}
