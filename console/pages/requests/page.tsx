import { PageHead } from '../../ui/panel.tsx'

export function RequestsPage() {
  return <PageHead title="Requests" />
}
