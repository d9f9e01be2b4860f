"""What is measured apart from collecting: methods where the truth is known, attacks carried out, and learning."""
