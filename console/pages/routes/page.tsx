import { PageHead } from '../../ui/panel.tsx'

export function RoutesPage() {
  return <PageHead title="Routes" />
}
