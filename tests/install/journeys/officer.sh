hearsay survey new survey.yaml --example mobility-week
hearsay survey check survey.yaml
hearsay plan survey.yaml --json > plan.json
hearsay dossier survey.yaml --html dossier.html
hearsay dossier survey.yaml --verify dossier.html
hearsay audit survey.yaml --devices 500 --periods 2 --html audit.html --fail-above epsilon=+0
